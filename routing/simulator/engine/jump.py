"""Steps of a batch that does not change, taken at once."""

import math
from dataclasses import dataclass


@dataclass(slots=True)
class Jump:
    """The first step takes `first` seconds, each further one `growth` more than the one before."""

    version: int
    began: float
    steps: int
    first: float
    growth: float
    prefill_share: float
    """Part of the time that goes to prompts."""
    reserved: int
    """Blocks that were taken for the growth of the first step already."""

    @property
    def ends(self) -> float:
        """When the last step is over."""
        return self.began + self.seconds(self.steps)

    def seconds(self, steps: int) -> float:
        """Length of so many steps from the beginning."""
        return steps * self.first + self.growth * steps * (steps - 1) / 2

    def steps_at(self, now: float) -> int:
        """Whole steps that are over at a moment."""
        passed = max(0.0, now - self.began)
        linear = self.first - self.growth / 2
        # The positive root of `seconds`, in the form that a growth of nearly 0 does not spoil.
        root = math.sqrt(linear * linear + 2 * self.growth * passed)
        steps = math.floor(2 * passed / (linear + root) + 1e-9)
        return min(self.steps, steps)

    def steps_begun(self, now: float) -> int:
        """Steps that are over or run at a moment; at least one."""
        steps = self.steps_at(now)
        if self.began + self.seconds(steps) < now - 1e-9:
            steps += 1
        return min(self.steps, max(1, steps))
