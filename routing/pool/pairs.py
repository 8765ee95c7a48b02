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
_REMEMBERED = 8
"""Combinations of masks whose costs are kept."""


@dataclass(frozen=True, slots=True)
class _Usable:
    """What some requests may use, before breakers: kept, because most requests have few masks."""

    prefills: Flags
    costs: Floats
    """Seconds per token of each pair, inf where it may not be used."""
    of_lines: Floats
    """0 where any pair of a line may be used and inf elsewhere."""


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
        self.is_full: Flags = np.zeros(shape, dtype=np.bool_)
        """As many transfers are under way as the pair may have."""
        self.is_cold: Flags = np.zeros(shape[1], dtype=np.bool_)
        """Decode endpoints that have not computed a prompt of their own yet: they pull nothing."""
        self.seconds_per_token: Floats = self.prior.copy()
        self._same_place = _same_place(table, self.prefill_rows, self.decode_rows)
        self.columns = np.arange(shape[1])
        self._has_closures = False
        self._usable: dict[tuple[int, bool], _Usable] = {}
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
        for row, column in self.column_of.items():
            known = old.column_of.get(rows.get(row, -1))
            if known is not None:
                self.is_cold[column] = old.is_cold[known]
        self.seconds_per_token = self.prior * self.scale
        self._usable.clear()
        self._look_at_closures()

    def forget(self) -> None:
        """Back to the contracts' own figures; breakers stay, they are not knowledge of speed."""
        self.scale[:] = 1.0
        self.seconds_per_token = self.prior.copy()
        self._usable.clear()

    def costs(
        self, prefills: Flags, *, one_place: bool, now: float, lines: Rows | None = None
    ) -> Floats:
        """Seconds per token of each pair, inf where it may not be used; of all or some lines."""
        costs = self._usable_by(prefills, one_place=one_place).costs
        if lines is not None:
            costs = costs[lines]
        if self._has_closures:
            until, full = self.open_until, self.is_full
            if lines is not None:
                until, full = until[lines], full[lines]
            costs = np.where((until > now) | full | self.is_cold, np.inf, costs)
        return costs

    def unusable(self, prefills: Flags, *, one_place: bool) -> Floats:
        """inf for each prefill endpoint without any pair that may be used, else 0; `(p,)`."""
        return self._usable_by(prefills, one_place=one_place).of_lines

    def _usable_by(self, prefills: Flags, *, one_place: bool) -> "_Usable":
        key = (id(prefills), one_place)
        found = self._usable.get(key)
        # The object is held, so its id is nobody else's.
        if found is None or found.prefills is not prefills:
            may_use = np.isfinite(self.prior) & prefills[self.prefill_rows][:, None]
            if one_place:
                # A path between two jurisdictions is unknown ground for a restricted tenant.
                may_use &= self._same_place
            if len(self._usable) >= _REMEMBERED:
                self._usable.clear()
            found = self._usable[key] = _Usable(
                prefills,
                costs=np.where(may_use, self.seconds_per_token, np.inf),
                of_lines=np.where(may_use.any(axis=1), 0.0, np.inf),
            )
        return found

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
            self._look_at_closures()

    def set_full(self, prefill_row: int, decode_row: int, *, is_full: bool) -> None:
        """Whether the pair carries as many transfers as it may."""
        line, column = self.line_of.get(prefill_row), self.column_of.get(decode_row)
        if line is not None and column is not None:
            self.is_full[line, column] = is_full
            self._look_at_closures()

    def set_cold(self, decode_row: int, *, is_cold: bool) -> None:
        """Whether a decode endpoint still waits for its first ordinary prompt."""
        column = self.column_of.get(decode_row)
        if column is not None:
            self.is_cold[column] = is_cold
            self._look_at_closures()

    def _look_at_closures(self) -> None:
        self._has_closures = bool(
            (self.open_until > -np.inf).any() or self.is_full.any() or self.is_cold.any()
        )

    def observe(self, prefill_row: int, decode_row: int, *, tokens: float, seconds: float) -> None:
        """Learn the cost of a transfer that took `seconds` for `tokens`; bounded, smoothed."""
        line, column = self.line_of.get(prefill_row), self.column_of.get(decode_row)
        if line is None or column is None or tokens <= 0 or seconds <= 0:
            return
        expected = self.prior[line, column] * tokens
        if not np.isfinite(expected) or expected <= 0:
            return
        seen = min(max(seconds / expected, _SCALE_RANGE[0]), _SCALE_RANGE[1])
        scale = self.scale[line, column]
        self.set_scale(line, column, scale + _SCALE_STEP * (seen - scale))

    def set_scale(self, line: int, column: int, scale: float) -> None:
        """A pair's transfers take this many times what its contract says."""
        self.scale[line, column] = scale
        cost = self.prior[line, column] * scale
        self.seconds_per_token[line, column] = cost
        for usable in self._usable.values():
            if usable.costs[line, column] < np.inf:
                usable.costs[line, column] = cost


def _verdicts(
    document: PoolDocument, prefill_rows: np.ndarray, decode_rows: np.ndarray
) -> list[list[PairVerdict]]:
    endpoints = document.endpoints
    known: dict[tuple[KvContract, KvContract, int], PairVerdict] = {}

    def verdict(prefill: int, decode: int) -> PairVerdict:
        size = document.speed_classes[endpoints[prefill].speed_class].kv_bytes_per_token
        groups = endpoints[prefill].role_group, endpoints[decode].role_group
        if groups[0] != groups[1]:
            return pairing.of_other_groups(*groups)
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
