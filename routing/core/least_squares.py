"""Recursive least squares with forgetting, for a few dimensionless factors around a prior of 1.

Every observation says: the time was `observed`, the prior would have said the sum of `parts`. The
factors that best explain the recent past multiply the parts. Three guards keep it sane: an error is
cut at three standard deviations, factors stay within a stated range around the prior, and after
each step a small share of the starting covariance is mixed in. That mixture is the forgetting: it
keeps the covariance positive and never lets it grow past where it started, however one-sided the
traffic. At the start the factors may be held to be alike (`together`): a card that is three times
too slow is so in every part.

Plain Python on purpose: with two or three factors an update takes a few microseconds, an array
library several times that.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

FORGETTING = 1e-4
"""Share of the starting covariance mixed in per observation; about 40 recent ones count."""
FIRST_NOISE_VARIANCE = 0.04
"""Relative error of one observation before any was seen: 20 %."""
NOISE_VARIANCE = 0.01
"""That of an ordinary observation, for its weight: 10 %."""
PRIOR_VARIANCE = 0.25
"""How far a factor may be off at the start: 50 %."""
FACTOR_RANGE = (0.1, 10.0)
_CUT = 3.0
_NOISE_STEP = 0.05
_LEAST_NOISE = 4e-4


class RelativeLeastSquares:
    """Factors, 1 at the start; `samples` counts what was learned from."""

    __slots__ = ("_covariance", "_start", "factors", "noise_variance", "samples")

    def __init__(
        self, size: int, *, variance: float = PRIOR_VARIANCE, together: float = 0.0
    ) -> None:
        """`variance` of each factor at the start, of which a share `together` is common to all."""
        self.factors = [1.0] * size
        self.noise_variance = FIRST_NOISE_VARIANCE
        self.samples = 0
        self._start = [
            [variance if row == column else variance * together for column in range(size)]
            for row in range(size)
        ]
        self._covariance = [list(line) for line in self._start]

    def start_from(self, other: "RelativeLeastSquares") -> None:
        """Take another's factors as the starting point, with this one's uncertainty about them."""
        self.factors = list(other.factors)
        self.noise_variance = other.noise_variance

    @property
    def variances(self) -> list[float]:
        """Variance of each factor."""
        return [self._covariance[row][row] for row in range(len(self.factors))]

    def export(self) -> dict[str, Any]:
        """JSON-able state."""
        return {
            "factors": self.factors,
            "covariance": self._covariance,
            "noise_variance": self.noise_variance,
            "samples": self.samples,
        }

    def restore(self, state: Mapping[str, Any], *, age_share: float) -> None:
        """Take a kept state; `age_share` of the starting uncertainty is added, 0 to 1.

        Raises ValueError when it is not a state of this size with finite numbers.
        """
        size = len(self.factors)
        try:
            factors = [float(value) for value in state["factors"]]
            kept = [[float(value) for value in line] for line in state["covariance"]]
            noise, samples = float(state["noise_variance"]), int(state["samples"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                "The kept state of an estimate has missing or wrong fields."
            ) from error
        if len(factors) != size or [len(line) for line in kept] != [size] * size:
            raise ValueError(f"The kept state of an estimate is not one of {size} factors.")
        lowest, highest = FACTOR_RANGE
        if not all(lowest <= factor <= highest for factor in factors):
            raise ValueError(f"A kept factor is not within {lowest} and {highest}.")
        if not _is_covariance(kept, self._start) or not 0 < noise < math.inf or samples < 0:
            raise ValueError("The kept covariance is not possible.")
        self.factors, self.noise_variance, self.samples = factors, noise, samples
        # A mixture of two covariances is one, and never above where learning starts.
        self._covariance = [
            [value + age_share * (start - value) for value, start in zip(*lines, strict=True)]
            for lines in zip(kept, self._start, strict=True)
        ]

    def update(
        self, parts: Sequence[float], observed: float, *, noise: float = NOISE_VARIANCE
    ) -> None:
        """Learn from one observation; `parts` are the prior's seconds per factor, all >= 0.

        `noise` is the relative variance that such an observation is taken to have.
        """
        expected = sum(parts)
        if expected <= 0 or not math.isfinite(expected) or not math.isfinite(observed):
            return
        x = [part / expected for part in parts]
        error = observed / expected - _dot(x, self.factors)
        spread = [_dot(line, x) for line in self._covariance]
        uncertainty = _dot(x, spread)
        doubt = self.noise_variance + max(noise - NOISE_VARIANCE, 0.0) + uncertainty
        limit = _CUT * math.sqrt(doubt)
        error = min(max(error, -limit), limit)
        # The assumed noise, not the measured one: after a change errors are large, and a gain that
        # shrinks with them would never follow.
        scale = 1.0 / (noise + uncertainty)
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
        for pulled, line, start in zip(spread, self._covariance, self._start, strict=True):
            pull = pulled * scale
            covariance.append(
                [
                    keep * (value - pull * other) + FORGETTING * first
                    for value, other, first in zip(line, spread, start, strict=True)
                ]
            )
        self._covariance = covariance


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    total = 0.0
    for a, b in zip(left, right, strict=True):
        total += a * b
    return total


def _is_covariance(kept: list[list[float]], start: list[list[float]]) -> bool:
    """Symmetric, finite, and no larger than where learning starts."""
    size = range(len(kept))
    return all(
        math.isfinite(kept[row][column])
        and abs(kept[row][column] - kept[column][row]) < 1e-9
        and 0.0 <= kept[row][row] <= start[row][row] + 1e-9
        and kept[row][column] ** 2 <= kept[row][row] * kept[column][column] + 1e-12
        for row in size
        for column in size
    )
