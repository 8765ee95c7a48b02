"""How far a long command is: a bar that is redrawn on a terminal, a line per tenth elsewhere."""

import sys
import time

WIDTH = 30
REDRAW_SECONDS = 0.1


class Progress:
    """Call it with the share that is done. Everything goes to stderr."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._started = time.monotonic()
        self._drawn_at = float("-inf")
        self._tenth = -1
        self._is_shown = False

    def __call__(self, share: float, what: str = "") -> None:
        """`share` is 0 to 1; `what` is being done."""
        now = time.monotonic()
        if not self._is_terminal:
            self._line(share, what)
        elif now - self._drawn_at >= REDRAW_SECONDS:
            self._drawn_at = now
            done = round(WIDTH * share)
            bar = "#" * done + "." * (WIDTH - done)
            self._write(f"\r\x1b[K{bar} {share:4.0%} {now - self._started:4.0f} s  {what}")

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the line to what comes next, an error or a table."""
        if self._is_terminal and self._is_shown:
            self._write("\r\x1b[K")

    def _line(self, share: float, what: str) -> None:
        tenth = int(10 * share)
        if tenth > self._tenth:
            self._tenth = tenth
            self._write(f"{share:.0%} {what}".rstrip() + "\n")

    def _write(self, text: str) -> None:
        self._is_shown = True
        print(text, end="", file=sys.stderr, flush=True)
