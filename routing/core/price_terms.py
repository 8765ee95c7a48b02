"""What a price is made of: seconds per term and endpoint, and which way they hold for."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from routing.core.table import Flags, Floats

Rows = NDArray[np.intp]
Lines = Sequence[Floats | None]
"""One array per term, total and time per token; `None` is 0 everywhere."""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What one request asks for, the same at every endpoint."""

    prompt_tokens: int
    output_tokens: int
    hit_tokens: Floats
    """Trusted tokens in each endpoint's cache, below `prompt_tokens`."""
    load_seconds: Floats | None = None
    """Time to load the part of the hit that is not in the device's memory; `None` is nowhere any.
    """
    ttft_target: float | None = None
    tpot_target: float | None = None
    """Seconds that the request is meant to meet; `None` is no target."""
    homes: tuple[int, ...] = ()
    """Rows of the endpoints on which its prefix lives."""
    shared_tokens: float = 0.0
    """Length of that prefix, as far as it was seen in caches."""
    doubt: float = 0.0
    """Share by which prices may differ and still count as equal; above 0 where others decide too.
    """


Gather = tuple[Floats, Rows | None]
"""Numbers and where each column's is among them; `None` is one after the other."""

TERMS = (
    "wait",
    "prefill",
    "load",
    "first_step",
    "transfer",
    "warm_up",
    "decode",
    "harm",
    "capacity",
    "slo",
    "money",
)
"""The parts of the total, in the order of the lines of `PriceTerms.values`."""
TOTAL, TPOT = len(TERMS), len(TERMS) + 1
WAIT, PREFILL, LOAD, FIRST_STEP, TRANSFER, WARM_UP = range(6)
DECODE, HARM, CAPACITY, SLO, MONEY = range(6, len(TERMS))


class PriceTerms:
    """Seconds per term and endpoint.

    A choice reads the total, and single numbers of the endpoint that is chosen. The matrix `values`
    is made for records and explanations only; it has a line per term, then the total, then the time
    per output token; shape `(13, n)`.
    """

    __slots__ = ("_lines", "_values", "total")

    def __init__(self, total: Floats, *, lines: Lines = (), values: Floats | None = None) -> None:
        """From arrays that nobody writes to: lines by themselves, or all in a matrix."""
        self._values = values
        self._lines = lines
        self.total = total
        """The price."""

    @classmethod
    def empty(cls, count: int) -> "PriceTerms":
        """Lines to be filled; what is not filled is 0."""
        values = np.zeros((len(TERMS) + 2, count))
        return cls(values[TOTAL], values=values)

    @property
    def values(self) -> Floats:
        """All lines; the total may be changed through it."""
        if self._values is None:
            self._values = values = np.zeros((len(TERMS) + 2, len(self.total)))
            for line, found in enumerate(self._lines):
                if found is not None:
                    values[line] = found
            self.total = values[TOTAL]
        return self._values

    def add_up(self) -> None:
        """Fill the total from the terms."""
        np.add.reduce(self.values[:TOTAL], axis=0, out=self.values[TOTAL])

    def at(self, line: int, column: int) -> float:
        """One number."""
        if self._values is not None:
            return float(self._values[line, column])
        found = self._lines[line]
        return 0.0 if found is None else found.item(column)

    def line(self, line: int) -> Floats:
        """All numbers of a term; nobody writes to them."""
        found = self._lines[line] if self._values is None else self._values[line]
        return np.zeros(len(self.total)) if found is None else found

    @property
    def wait(self) -> Floats:
        """Seconds before anything is done for the request."""
        return self.line(WAIT)

    def ttft_at(self, column: int) -> float:
        """Expected seconds to the first token at one endpoint."""
        if self._values is None and self._lines:
            lines = self._lines[: WARM_UP + 1]
            return sum([line.item(column) for line in lines if line is not None], 0.0)
        return sum([self.at(line, column) for line in range(WARM_UP + 1)], 0.0)

    def tpot_at(self, column: int) -> float:
        """Expected seconds per output token at one endpoint."""
        return self.at(TPOT, column)

    def transfer_at(self, column: int) -> float:
        """Expected seconds that KV takes from the prefill endpoint; 0 for a local prompt."""
        return self.at(TRANSFER, column)

    def load_at(self, column: int) -> float:
        """Expected seconds to bring KV from a lower tier to the device."""
        return self.at(LOAD, column)

    def by_name(self, column: int) -> dict[str, float]:
        """All numbers of one endpoint, for a record."""
        names = (*TERMS, "total", "tpot")
        return {name: self.at(line, column) for line, name in enumerate(names)}


class PairTerms(PriceTerms):
    """Each decode endpoint with one prefill endpoint; columns are those of the decode endpoints.

    What a destination decodes costs the same wherever its prompt was computed, so all but a few
    lines are found in the terms of the two endpoints by themselves.
    """

    __slots__ = ("_admission", "_ends", "_local", "_own")

    def __init__(
        self,
        local: PriceTerms,
        *,
        sources: Rows,
        decode_rows: Rows,
        admission: Floats,
        own: Mapping[int, Gather],
        total: Floats,
    ) -> None:
        """`sources` are the rows of the prefill endpoints; `own` are lines that only pairs have."""
        super().__init__(total)
        self._local, self._ends = local, (sources, decode_rows)
        self._admission, self._own = admission, own

    @property
    def values(self) -> Floats:
        """All lines."""
        if self._values is None:
            local, (sources, rows) = self._local.values, self._ends
            self._values = values = local.take(rows, axis=1)
            values[WAIT] = self.wait
            values[PREFILL : LOAD + 1] = local[PREFILL : LOAD + 1].take(sources, axis=1)
            for line in (FIRST_STEP, WARM_UP):
                values[line] += local[line].take(sources)
            for line, (found, index) in self._own.items():
                values[line] = found if index is None else found[index]
            self.total = values[TOTAL]
        return self._values

    def at(self, line: int, column: int) -> float:
        """One number."""
        if self._values is not None:
            return float(self._values[line, column])
        if line in self._own:
            found, index = self._own[line]
            return found.item(column if index is None else index.item(column))
        source, row = self._ends[0].item(column), self._ends[1].item(column)
        if line == WAIT:
            return self._local.at(WAIT, source) + self._admission.item(row)
        if line in (FIRST_STEP, WARM_UP):
            return self._local.at(line, source) + self._local.at(line, row)
        return self._local.at(line, source if line <= LOAD else row)

    @property
    def wait(self) -> Floats:
        """Queue at the prefill endpoint, and admission at the destination."""
        sources, rows = self._ends
        waits: Floats = self._local.line(WAIT)[sources] + self._admission[rows]
        return waits


class BestTerms:
    """For each endpoint the cheaper way of computing the prompt: there, or through its best pair.

    Only the total, which every choice reads, is merged; the rest is looked up per endpoint.
    """

    __slots__ = ("_column_of", "_local", "_paired", "_sources", "_use", "total")

    def __init__(self, local: PriceTerms) -> None:
        self._local = local
        self._paired: PriceTerms | None = None
        self._column_of: Mapping[int, int] = {}
        self._use: Flags | None = None
        self._sources: Rows | None = None
        self.total = local.total

    def put_pairs(
        self, paired: PriceTerms, *, sources: Rows, use: Flags, column_of: Mapping[int, int]
    ) -> None:
        """Prefer the pairs where `use` is true.

        `sources` are the table rows of the prefill endpoints, `column_of` gives the column in
        `paired` of each decode row, in order.
        """
        self._paired, self._column_of = paired, column_of
        self._use, self._sources = use, sources

    def at(self, row: int) -> tuple[PriceTerms, int]:
        """Terms that hold for an endpoint, and its column in them."""
        column = self._column_of.get(row)
        if column is None or self._paired is None or self._use is None or not self._use[column]:
            return self._local, row
        return self._paired, column

    def prefill_at(self, row: int) -> int:
        """Row of the endpoint that computes the prompt for this one; -1 when it does so itself."""
        terms, column = self.at(row)
        return -1 if terms is self._local or self._sources is None else int(self._sources[column])

    def other_at(self, row: int) -> tuple[float, int] | None:
        """Total of the way that was not taken, and its prefill row (-1 is the endpoint itself).

        `None` where there is one way only; the total is inf where the pair may not be used.
        """
        column = self._column_of.get(row)
        if column is None or self._paired is None or self._use is None or self._sources is None:
            return None
        if self._use[column]:
            return float(self._local.total[row]), -1
        return float(self._paired.total[column]), int(self._sources[column])

    def waits(self) -> Floats:
        """Seconds before anything is done for the request, at every endpoint."""
        if self._paired is None or self._use is None:
            return self._local.wait
        waits, rows = self._local.wait.copy(), list(self._column_of)
        waits[rows] = np.where(self._use, self._paired.wait, waits[rows])
        return waits

    def cheapest_wait(self, rows: Rows) -> float:
        """Shortest wait among some endpoints."""
        waits = self._local.wait[rows]
        shortest: float = waits.item(waits.argmin())
        if self._paired is None or shortest <= 0:
            return shortest
        waits = self.waits()[rows]
        return waits.item(waits.argmin())
