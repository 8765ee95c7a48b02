"""What the bands are about: a number of a pair of ladders, Service and router, or of all rows.

Every measure gives the simulated and the published number; `None` where a side does not have it.
Warm-up stages are left out. Limits on "every stage" are on the value that is farthest from the
middle of the band.
"""

import math
from collections.abc import Callable, Sequence
from statistics import mean, median

import msgspec

from routing.simulator.reproduce.stages import StageRow

Numbers = tuple[float | None, float | None]
"""Simulated and published."""


class Band(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of `bands.yaml`."""

    id: str
    case: str
    measure: str
    text: str
    at: float = 0.0
    """Requests per second of a stage, or from which on."""
    low: float | None = None
    high: float | None = None

    def holds(self, value: float | None) -> bool:
        """Whether a number is known and in the band."""
        return (
            value is not None
            and (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
        )


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two ladders of equal stages."""

    service: tuple[StageRow, ...]
    router: tuple[StageRow, ...]


Field = Callable[[StageRow], float | None]


def output(row: StageRow) -> float | None:
    """Simulated throughput."""
    return row.out_tok_s


def published_output(row: StageRow) -> float | None:
    """As published."""
    return row.published_out_tok_s


def ttft_mean(row: StageRow) -> float | None:
    """Simulated mean time to the first token."""
    return row.ttft_mean_s


def published_ttft_mean(row: StageRow) -> float | None:
    """As published."""
    return row.published_ttft_mean_s


def ttft_p50(row: StageRow) -> float | None:
    """Simulated median time to the first token."""
    return row.ttft_p50_s


def published_ttft_p50(row: StageRow) -> float | None:
    """As published."""
    return row.published_ttft_p50_s


def measured(pair: Pair, band: Band) -> Numbers:
    """A measure of a pair by name. Raises KeyError for an unknown name."""
    return PAIR_MEASURES[band.measure](pair, band)


def _ladder_ratio(pair: Pair, band: Band) -> Numbers:
    del band
    return _ladder(pair, output), _ladder(pair, published_output)


def _ladder_ratio_to_published(pair: Pair, band: Band) -> Numbers:
    simulated, published = _ladder_ratio(pair, band)
    return _quotient(simulated, published), 1.0


def _ladder(pair: Pair, of: Field) -> float | None:
    return _quotient(_mean(pair.router, of), _mean(pair.service, of))


def _output_ratio(pair: Pair, band: Band) -> Numbers:
    return (
        _quotient(_at(pair.router, band, output), _at(pair.service, band, output)),
        _quotient(
            _at(pair.router, band, published_output), _at(pair.service, band, published_output)
        ),
    )


def _service_output_from(pair: Pair, band: Band) -> Numbers:
    return _farthest(pair.service, band, output), _farthest(pair.service, band, published_output)


def _router_output_from(pair: Pair, band: Band) -> Numbers:
    return _farthest(pair.router, band, output), _farthest(pair.router, band, published_output)


def _router_ttft_p50(pair: Pair, band: Band) -> Numbers:
    return _farthest(pair.router, band, ttft_p50), _farthest(pair.router, band, published_ttft_p50)


def _service_peak(pair: Pair, band: Band) -> Numbers:
    del band
    return _peak(pair.service, output), _peak(pair.service, published_output)


def _service_after_peak(pair: Pair, band: Band) -> Numbers:
    del band
    return _last_to_peak(pair.service, output), _last_to_peak(pair.service, published_output)


def _last_to_peak(rows: Sequence[StageRow], of: Field) -> float | None:
    return _quotient(of(rows[-1]), _peak(rows[:-1], of))


def _ttft_mean_ratio(pair: Pair, band: Band) -> Numbers:
    return (
        _quotient(_at(pair.service, band, ttft_mean), _at(pair.router, band, ttft_mean)),
        _quotient(
            _at(pair.service, band, published_ttft_mean),
            _at(pair.router, band, published_ttft_mean),
        ),
    )


def _ttft_p50_ratio(pair: Pair, band: Band) -> Numbers:
    return (
        _quotient(_at(pair.service, band, ttft_p50), _at(pair.router, band, ttft_p50)),
        _quotient(
            _at(pair.service, band, published_ttft_p50), _at(pair.router, band, published_ttft_p50)
        ),
    )


def _ttft_mean_difference(pair: Pair, band: Band) -> Numbers:
    return (
        _difference(_at(pair.router, band, ttft_mean), _at(pair.service, band, ttft_mean)),
        _difference(
            _at(pair.router, band, published_ttft_mean),
            _at(pair.service, band, published_ttft_mean),
        ),
    )


PAIR_MEASURES: dict[str, Callable[[Pair, Band], Numbers]] = {
    "ladder_ratio": _ladder_ratio,
    "ladder_ratio_to_published": _ladder_ratio_to_published,
    "output_ratio": _output_ratio,
    "service_output_from": _service_output_from,
    "router_output_from": _router_output_from,
    "router_ttft_p50": _router_ttft_p50,
    "service_peak": _service_peak,
    "service_after_peak": _service_after_peak,
    "ttft_mean_ratio": _ttft_mean_ratio,
    "ttft_p50_ratio": _ttft_p50_ratio,
    "ttft_mean_difference": _ttft_mean_difference,
}


def overall(rows: Sequence[StageRow], measure: str) -> float | None:
    """A measure over every row that has a published side. Raises KeyError for an unknown name."""
    return OVERALL[measure](rows)


def _median_error_output(rows: Sequence[StageRow]) -> float | None:
    return _median_error(rows, output, published_output)


def _median_error_tpot(rows: Sequence[StageRow]) -> float | None:
    return _median_error(rows, lambda row: row.tpot_mean_ms, lambda row: row.published_tpot_mean_ms)


def _median_factor_ttft(rows: Sequence[StageRow]) -> float | None:
    found = []
    for row in rows:
        ours, theirs = row.ttft_mean_s, row.published_ttft_mean_s
        if ours and theirs and max(ours, theirs) > 1.0:
            found.append(math.exp(abs(math.log(ours / theirs))))
    return median(found) if found else None


OVERALL: dict[str, Callable[[Sequence[StageRow]], float | None]] = {
    "median_error_output": _median_error_output,
    "median_error_tpot": _median_error_tpot,
    "median_factor_ttft": _median_factor_ttft,
}


def _median_error(rows: Sequence[StageRow], of: Field, published: Field) -> float | None:
    found = []
    for row in rows:
        ours, theirs = of(row), published(row)
        if ours is not None and theirs:
            found.append(abs(ours / theirs - 1))
    return median(found) if found else None


def _mean(rows: Sequence[StageRow], of: Field) -> float | None:
    found = [value for row in rows if (value := of(row)) is not None]
    return mean(found) if found else None


def _peak(rows: Sequence[StageRow], of: Field) -> float | None:
    return max((value for row in rows if (value := of(row)) is not None), default=None)


def _at(rows: Sequence[StageRow], band: Band, of: Field) -> float | None:
    return next((of(row) for row in rows if row.rate_qps == band.at), None)


def _farthest(rows: Sequence[StageRow], band: Band, of: Field) -> float | None:
    middle = ((band.low or 0.0) + (band.high or 0.0)) / 2
    found = [value for row in rows if row.rate_qps >= band.at and (value := of(row)) is not None]
    return max(found, key=lambda value: abs(value - middle)) if found else None


def _quotient(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
