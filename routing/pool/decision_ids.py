"""Ids of decisions: unique as long as each router core begins its own with another prefix.

Nothing of a client is in them, so that no request id, however chosen, makes two decisions one.
"""


class DecisionIds:
    """Numbers the decisions of one router core."""

    def __init__(self, prefix: str = "") -> None:
        """`prefix` is to be unlike that of any other core, as random letters are."""
        self._prefix = prefix
        self._last = 0

    def next(self) -> str:
        """An id that was not given before."""
        self._last += 1
        return f"d-{self._prefix}{self._last}"
