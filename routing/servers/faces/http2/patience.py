"""How many frames that bring no work a peer may send.

Pings, settings, windows, resets, empty frames: each costs its sender a few bytes, and some cost us
more. A gateway sends few of them, in proportion to the messages it brings; a flood of them ends
the connection (CVE-2019-9512 to 9518, CVE-2023-44487 and their like).
"""

from collections.abc import Callable

from routing.servers.faces.http2.frames import Code, ConnectionBrokenError

MOST = 10_000
"""That may come at once."""
PER_SECOND = 1_000
PER_MESSAGE = 8
"""What a message earns: to open its stream, give windows and reset it in the end."""


class Patience:
    """The clock is asked only when all is used up."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._left = MOST
        self._filled_at = now()

    def spend(self, cost: int = 1) -> None:
        """A frame that brings no work. Raises ConnectionBrokenError."""
        self._left -= cost
        if self._left >= 0:
            return
        now = self._now()
        earned = int((now - self._filled_at) * PER_SECOND)
        self._left = min(self._left + cost + earned, MOST) - cost
        self._filled_at = now
        if self._left < 0:
            raise ConnectionBrokenError(
                Code.ENHANCE_YOUR_CALM, "a flood of frames that bring no messages"
            )

    def earn(self, messages: int) -> None:
        """Messages came."""
        self._left = min(self._left + messages * PER_MESSAGE, MOST)
