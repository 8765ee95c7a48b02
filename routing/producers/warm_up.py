"""What the first request of a fresh process pays beyond its price: kernels and graphs are made.

Processes that a router finds at its own start are taken for warm: most are, and nothing is known.
A class learns the cost from those that appear later.
"""

from routing.core.table import EndpointTable, Instance

FIRST_GUESS_SECONDS = 0.5
MOST_SECONDS = 30.0
_STEP = 0.3


class WarmUp:
    """Learned seconds per class; fills the column `warm_up_seconds` of fresh endpoints."""

    def __init__(self) -> None:
        self._of_class: dict[str, float] = {}

    def seconds(self, speed_class: str) -> float:
        """What a fresh endpoint of a class is expected to take."""
        return self._of_class.get(speed_class, FIRST_GUESS_SECONDS)

    def begin(self, table: EndpointTable, instance: Instance) -> None:
        """A process was started: nobody has used it yet."""
        table.warm_up_seconds[instance.row] = self.seconds(instance.spec.speed_class)
        table.has_cold = bool((table.warm_up_seconds > 0).any())

    def answered(
        self, table: EndpointTable, instance: Instance, *, excess_seconds: float | None
    ) -> None:
        """It gave a first token, `excess_seconds` later than a warm one would have."""
        if excess_seconds is not None:
            name = instance.spec.speed_class
            known, seen = self.seconds(name), min(max(excess_seconds, 0.0), MOST_SECONDS)
            self._of_class[name] = known + _STEP * (seen - known)
        table.warm_up_seconds[instance.row] = 0.0
        table.has_cold = bool((table.warm_up_seconds > 0).any())

    def keep_only(self, classes: set[str]) -> None:
        """Forget classes that are not in the document any more."""
        self._of_class = {key: value for key, value in self._of_class.items() if key in classes}
