"""How far simulated stages are from published ones: logarithms of ratios, quantity by quantity."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from routing.simulator.published.tables import Row
from routing.simulator.report.stage import Spread, StageReport

Quantity = Literal["requests_per_s", "ttft_p50_s", "ttft_mean_s", "tpot_mean_s"]
WEIGHTS: dict[Quantity, float] = {
    "requests_per_s": 1.0,
    "tpot_mean_s": 1.0,
    "ttft_p50_s": 0.5,
    "ttft_mean_s": 0.25,
}
"""Times to the first token of a full pool differ by factors between two runs of it."""

MOST = 1.0
"""One quantity counts for a factor of e at most, so that no single row decides."""


class Error(msgspec.Struct, frozen=True, kw_only=True):
    """Of one quantity of one stage."""

    rate_qps: float
    quantity: Quantity
    published: float
    simulated: float

    @property
    def log_ratio(self) -> float:
        """Above 0 where the simulation is higher."""
        return math.log(self.simulated / self.published)


def errors_of(rows: Sequence[Row], reports: Sequence[StageReport]) -> Iterator[Error]:
    """Of every quantity that both know. Rows and reports are of the same stages, in order."""
    for row, report in zip(rows, reports, strict=True):
        found: dict[Quantity, tuple[float | None, float | None]] = {
            "requests_per_s": (row.requests_per_s, report.requests_per_s),
            "tpot_mean_s": (row.tpot_mean_s, _mean(report.tpot)),
            "ttft_p50_s": (row.ttft_p50_s, report.ttft.p50 if report.ttft else None),
            "ttft_mean_s": (row.ttft_mean_s, _mean(report.ttft)),
        }
        for quantity, (published, simulated) in found.items():
            if published and simulated:
                yield Error(
                    rate_qps=row.rate_qps,
                    quantity=quantity,
                    published=published,
                    simulated=simulated,
                )


def loss_of(errors: Sequence[Error]) -> float:
    """Weighted mean of absolute logarithms, each at most `MOST`; 0.1 is about 10 %."""
    weights = [WEIGHTS[error.quantity] for error in errors]
    sizes = [min(MOST, abs(error.log_ratio)) for error in errors]
    total = sum(weight * size for weight, size in zip(weights, sizes, strict=True))
    return total / sum(weights) if weights else math.inf


def _mean(spread: Spread | None) -> float | None:
    return None if spread is None else spread.mean
