"""Start a coroutine at once, and make a task only for what is left of it.

Most of what may have to wait does not, and a task costs more than what runs in it then. (Eager
tasks of asyncio came with Python 3.12.)
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


def run(coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Run until it waits; the task of the rest, or `None` when it has ended.

    Raises what it raises before it waits. That part is in no task: it must not ask for one, as
    `asyncio.timeout` does.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration:
        return None
    return asyncio.get_running_loop().create_task(_Rest(coroutine, awaited))


class _Rest(Coroutine[Any, Any, None]):
    """A coroutine that has begun and waits.

    A task drives it directly, so a task that is cancelled before its first step is heard inside.
    """

    def __init__(self, begun: Coroutine[Any, Any, None], awaited: Any) -> None:
        self._begun = begun
        self._awaited = awaited

    def send(self, value: Any) -> Any:
        """First what it waits for, then it goes on."""
        if self._awaited is None:
            return self._begun.send(value)
        awaited, self._awaited = self._awaited, None
        return awaited

    def throw(self, *error: Any) -> Any:
        """It hears of an error where it waits."""
        self._awaited = None
        return self._begun.throw(*error)

    def close(self) -> None:
        """End it."""
        self._begun.close()

    def __await__(self) -> Generator[Any, Any, None]:
        raise TypeError("Only a task runs the rest of a coroutine.")
