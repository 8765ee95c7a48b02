"""Recursive least squares with forgetting, for a few dimensionless factors around a prior of 1.

Every observation says: the time was `observed`, the prior would have said the sum of `parts`. The
factors that best explain the recent past multiply the parts. Three guards keep it sane: an error is
cut at three standard deviations, factors stay within a stated range around the prior, and after
each step a small share of the starting covariance is mixed in. That mixture is the forgetting: it
keeps the covariance positive and never lets it grow past where it started, however one-sided the
traffic.

Plain Python on purpose: with two or three factors an update takes a few microseconds, an array
library several times that.
"""

import math
from collections.abc import Sequence

FORGETTING = 1e-4
"""Share of the starting covariance mixed in per observation; about 40 recent ones count."""
NOISE_VARIANCE = 0.04
"""Relative error of one observation before any was seen: 20 %."""
PRIOR_VARIANCE = 0.25
"""How far a factor may be off at the start: 50 %."""
FACTOR_RANGE = (0.1, 10.0)
_CUT = 3.0
_NOISE_STEP = 0.05
_LEAST_NOISE = 4e-4


class RelativeLeastSquares:
    """Factors, 1 at the start; `samples` counts what was learned from."""

    def __init__(self, size: int) -> None:
        self.factors = [1.0] * size
        self.noise_variance = NOISE_VARIANCE
        self.samples = 0
        self._covariance = [
            [PRIOR_VARIANCE if row == column else 0.0 for column in range(size)]
            for row in range(size)
        ]

    def start_from(self, other: "RelativeLeastSquares") -> None:
        """Take another's factors as the starting point, with the prior's uncertainty about them."""
        self.factors = list(other.factors)
        self.noise_variance = other.noise_variance

    @property
    def variances(self) -> list[float]:
        """Variance of each factor."""
        return [self._covariance[row][row] for row in range(len(self.factors))]

    def update(self, parts: Sequence[float], observed: float) -> None:
        """Learn from one observation; `parts` are the prior's seconds per factor, all >= 0."""
        expected = sum(parts)
        if expected <= 0 or not math.isfinite(expected) or not math.isfinite(observed):
            return
        x = [part / expected for part in parts]
        error = observed / expected - _dot(x, self.factors)
        spread = [_dot(line, x) for line in self._covariance]
        uncertainty = _dot(x, spread)
        limit = _CUT * math.sqrt(self.noise_variance + uncertainty)
        error = min(max(error, -limit), limit)
        # The assumed noise, not the measured one: after a change errors are large, and a gain that
        # shrinks with them would never follow.
        scale = 1.0 / (NOISE_VARIANCE + uncertainty)
        self.factors = [
            min(max(factor + gain * scale * error, FACTOR_RANGE[0]), FACTOR_RANGE[1])
            for factor, gain in zip(self.factors, spread, strict=True)
        ]
        self._shrink(spread, scale)
        self.noise_variance += _NOISE_STEP * (error * error - self.noise_variance)
        self.noise_variance = max(self.noise_variance, _LEAST_NOISE)
        self.samples += 1

    def _shrink(self, spread: list[float], scale: float) -> None:
        keep = 1.0 - FORGETTING
        covariance = []
        for row, line in enumerate(self._covariance):
            pull = spread[row] * scale
            shrunk = [
                keep * (value - pull * other) for value, other in zip(line, spread, strict=True)
            ]
            shrunk[row] += FORGETTING * PRIOR_VARIANCE
            covariance.append(shrunk)
        self._covariance = covariance


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    total = 0.0
    for a, b in zip(left, right, strict=True):
        total += a * b
    return total
