"""The P/D pairs of a document: verdicts, transfer cost, breakers, as P x D matrices.

Only endpoints of role `prefill` compute prompts for others and only role `decode` takes them. A
pair's cost is learned from how long the destination needed after the prompt was ready.
"""

from dataclasses import dataclass

import numpy as np

from routing.core import pairing
from routing.core.document import KvContract, PoolDocument
from routing.core.pairing import PairVerdict
from routing.core.pricing import Rows
from routing.core.table import EndpointTable, Flags, Floats

UNSTATED_LINK_BYTES_PER_SECOND = 12.5e9
"""Taken when a compatible pair states no rate: the 100 Gb/s network of the published clusters."""
_SCALE_RANGE = (1 / 8, 8.0)
_SCALE_STEP = 0.1


@dataclass(frozen=True, slots=True)
class _Penalties:
    """0 where a pair, or any pair of a line, may be used and inf elsewhere, for these masks."""

    prefills: Flags
    one_place: bool
    of_pairs: Floats
    of_lines: Floats


class PairTable:
    """Rebuilt with each document; what was learned about pairs that remain is carried over."""

    def __init__(self, document: PoolDocument, table: EndpointTable) -> None:
        self.prefill_rows = np.flatnonzero(table.is_prefill)
        self.decode_rows = np.flatnonzero(table.is_decode)
        self.column_of = {int(row): column for column, row in enumerate(self.decode_rows)}
        self.line_of = {int(row): line for line, row in enumerate(self.prefill_rows)}
        self.verdicts = _verdicts(document, self.prefill_rows, self.decode_rows)
        shape = (len(self.prefill_rows), len(self.decode_rows))
        self.prior = _prior_costs(document, self.verdicts, self.prefill_rows, shape)
        self.scale: Floats = np.ones(shape)
        self.open_until: Floats = np.full(shape, -np.inf)
        self.seconds_per_token: Floats = self.prior.copy()
        self._same_place = _same_place(table, self.prefill_rows, self.decode_rows)
        self.columns = np.arange(shape[1])
        self._has_breakers = False
        self._last: _Penalties | None = None
        self.exists = bool(np.isfinite(self.prior).any())

    def adopt(self, old: "PairTable", rows: dict[int, int]) -> None:
        """Copy learned scales and breakers of pairs whose two ends survived (`{new: old}` rows)."""
        for row, line in self.line_of.items():
            for other, column in self.column_of.items():
                before = (
                    old.line_of.get(rows.get(row, -1)),
                    old.column_of.get(rows.get(other, -1)),
                )
                if before[0] is not None and before[1] is not None:
                    self.scale[line, column] = old.scale[before[0], before[1]]
                    self.open_until[line, column] = old.open_until[before[0], before[1]]
        self.seconds_per_token = self.prior * self.scale
        self._has_breakers = bool((self.open_until > -np.inf).any())

    def forget(self) -> None:
        """Back to the contracts' own figures; breakers stay, they are not knowledge of speed."""
        self.scale[:] = 1.0
        self.seconds_per_token = self.prior.copy()

    def costs(
        self, prefills: Flags, *, one_place: bool, now: float, lines: Rows | None = None
    ) -> Floats:
        """Seconds per token of each pair, inf where it may not be used; of all or some lines."""
        penalty, known, until = (
            self._penalties(prefills, one_place=one_place).of_pairs,
            self.seconds_per_token,
            self.open_until,
        )
        if lines is not None:
            penalty, known, until = penalty[lines], known[lines], until[lines]
        costs: Floats = known + penalty
        if self._has_breakers:
            costs[until > now] = np.inf
        return costs

    def unusable(self, prefills: Flags, *, one_place: bool) -> Floats:
        """inf for each prefill endpoint without any pair that may be used, else 0; `(p,)`."""
        return self._penalties(prefills, one_place=one_place).of_lines

    def _penalties(self, prefills: Flags, *, one_place: bool) -> "_Penalties":
        """The masks of most requests are the same object as the last time."""
        last = self._last
        if last is None or last.prefills is not prefills or last.one_place != one_place:
            usable = np.isfinite(self.prior) & prefills[self.prefill_rows][:, None]
            if one_place:
                # A path between two jurisdictions is unknown ground for a restricted tenant.
                usable &= self._same_place
            last = self._last = _Penalties(
                prefills,
                one_place,
                of_pairs=np.where(usable, 0.0, np.inf),
                of_lines=np.where(usable.any(axis=1), 0.0, np.inf),
            )
        return last

    def prefill_rows_for(
        self, destination: int, prefills: Flags, *, one_place: bool, now: float
    ) -> list[int]:
        """Rows that may compute the prompt for a decode row, in document order."""
        column = self.column_of.get(destination)
        if column is None or not self.exists:
            return []
        costs = self.costs(prefills, one_place=one_place, now=now)[:, column]
        return [int(row) for row in self.prefill_rows[np.isfinite(costs)]]

    def set_open(self, prefill_row: int, decode_row: int, until: float) -> None:
        """Keep a pair out until a time; -inf closes its breaker."""
        line, column = self.line_of.get(prefill_row), self.column_of.get(decode_row)
        if line is not None and column is not None:
            self.open_until[line, column] = until
            self._has_breakers = bool((self.open_until > -np.inf).any())

    def observe(self, prefill_row: int, decode_row: int, *, tokens: int, seconds: float) -> None:
        """Learn the cost of a transfer that took `seconds` for `tokens`; bounded, smoothed."""
        line, column = self.line_of.get(prefill_row), self.column_of.get(decode_row)
        if line is None or column is None or tokens <= 0 or seconds <= 0:
            return
        expected = self.prior[line, column] * tokens
        if not np.isfinite(expected) or expected <= 0:
            return
        seen = min(max(seconds / expected, _SCALE_RANGE[0]), _SCALE_RANGE[1])
        self.scale[line, column] += _SCALE_STEP * (seen - self.scale[line, column])
        self.seconds_per_token[line, column] = self.prior[line, column] * self.scale[line, column]


def _verdicts(
    document: PoolDocument, prefill_rows: np.ndarray, decode_rows: np.ndarray
) -> list[list[PairVerdict]]:
    endpoints = document.endpoints
    known: dict[tuple[KvContract, KvContract, int], PairVerdict] = {}

    def verdict(prefill: int, decode: int) -> PairVerdict:
        size = document.speed_classes[endpoints[prefill].speed_class].kv_bytes_per_token
        key = (endpoints[prefill].kv_contract, endpoints[decode].kv_contract, size)
        if key not in known:
            known[key] = pairing.pair(key[0], key[1], kv_bytes_per_token=size)
        return known[key]

    return [[verdict(prefill, decode) for decode in decode_rows] for prefill in prefill_rows]


def _prior_costs(
    document: PoolDocument,
    verdicts: list[list[PairVerdict]],
    prefill_rows: np.ndarray,
    shape: tuple[int, int],
) -> Floats:
    costs: Floats = np.full(shape, np.inf)
    for line, row in enumerate(prefill_rows):
        endpoint = document.endpoints[row]
        size = document.speed_classes[endpoint.speed_class].kv_bytes_per_token
        for column, verdict in enumerate(verdicts[line]):
            if _may_use(document, verdict):
                stated = verdict.seconds_per_1000_tokens
                costs[line, column] = (
                    size / UNSTATED_LINK_BYTES_PER_SECOND if stated is None else stated / 1000
                )
    return costs


def _may_use(document: PoolDocument, verdict: PairVerdict) -> bool:
    rules = document.disaggregation
    return (
        verdict.verdict == "compatible"
        or (verdict.verdict == "compatible_with" and rules.allow_staging)
        or (verdict.verdict == "unknown" and rules.allow_unknown_pairs)
    )


def _same_place(table: EndpointTable, prefill_rows: np.ndarray, decode_rows: np.ndarray) -> Flags:
    places = table.jurisdictions
    return np.array(
        [
            [
                places[prefill] is not None and places[prefill] == places[decode]
                for decode in decode_rows
            ]
            for prefill in prefill_rows
        ],
        dtype=np.bool_,
    ).reshape(len(prefill_rows), len(decode_rows))
