"""How far predicted times were from what was seen, per class and per endpoint.

Each prediction is kept with its outcome until the request ends (its lease has both); what stays is
the mean absolute relative error, exponentially weighted, and how many outcomes it is made of.
"""

import math
from typing import Any

from routing.core.table import Instance

STEP = 0.02
"""Weight of one outcome once there are many; before, the plain mean."""
_CUT = 10.0
"""A request that stood still for a minute says nothing about the other 99."""


class Errors:
    """Running errors of the time to the first token and the time per token after it."""

    __slots__ = ("count", "mean")

    def __init__(self) -> None:
        self.mean = {"ttft": math.nan, "tpot": math.nan}
        self.count = {"ttft": 0, "tpot": 0}

    def add(self, phase: str, error: float) -> None:
        """Take one relative error."""
        self.count[phase] += 1
        known, share = self.mean[phase], max(STEP, 1.0 / self.count[phase])
        self.mean[phase] = error if math.isnan(known) else known + share * (error - known)

    def describe(self) -> dict[str, Any]:
        """Errors as shares, null before any outcome, and their counts."""
        return {
            phase: {
                "mean_error": None if math.isnan(mean) else round(mean, 4),
                "outcomes": self.count[phase],
            }
            for phase, mean in self.mean.items()
        }


class Predictions:
    """Errors by class and by instance; those of an instance go with it."""

    def __init__(self) -> None:
        self.of_class: dict[str, Errors] = {}
        self.of_instance: dict[Instance, Errors] = {}

    def observe(self, instance: Instance, phase: str, *, predicted: float, seen: float) -> None:
        """One outcome; without a prediction (NaN) it says nothing."""
        if not math.isfinite(predicted) or not seen > 0:
            return
        error = min(abs(predicted - seen) / seen, _CUT)
        self.of_class.setdefault(instance.spec.speed_class, Errors()).add(phase, error)
        self.of_instance.setdefault(instance, Errors()).add(phase, error)

    def keep_only(self, instances: set[Instance], classes: set[str]) -> None:
        """Forget what is not in the document any more."""
        self.of_instance = {
            key: value for key, value in self.of_instance.items() if key in instances
        }
        self.of_class = {key: value for key, value in self.of_class.items() if key in classes}

    def forget(self) -> None:
        """Start counting again."""
        self.of_class.clear()
        self.of_instance.clear()

    def describe(self, instance: Instance) -> dict[str, Any]:
        """Errors of one endpoint."""
        return self.of_instance.get(instance, Errors()).describe()

    def describe_classes(self) -> dict[str, Any]:
        """Errors per class, for the snapshot and the metrics page."""
        return {name: errors.describe() for name, errors in sorted(self.of_class.items())}
