"""The id of the request (or task) that the current code works for."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str] = ContextVar("request_id", default="")


def current() -> str:
    """Id of the current request, or "" outside of one."""
    return _current.get()


@contextmanager
def bound(identifier: str) -> Iterator[None]:
    """Make `identifier` the current id inside the block."""
    token = _current.set(identifier)
    try:
        yield
    finally:
        _current.reset(token)
