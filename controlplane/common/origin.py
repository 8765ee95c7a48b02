"""Where the current work comes from: the address and the credential, for audit entries."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Origin:
    """Who asked, as seen by the machine and not as claimed by the caller."""

    kind: str = "system"
    """user, token, worker or system."""
    auth_method: str = ""
    """session, api-token or "" outside of requests."""
    address: str = ""
    """Peer address of the request, "" outside of one."""


_UNKNOWN = Origin()
_current: ContextVar[Origin] = ContextVar("origin", default=_UNKNOWN)


def current() -> Origin:
    """Origin of the current work."""
    return _current.get()


def refine(*, kind: str, auth_method: str) -> None:
    """Say who the credential of the current request belongs to.

    Outside of a `bound` block nothing would take it back, so there it does nothing.
    """
    if _current.get() is not _UNKNOWN:
        _current.set(replace(_current.get(), kind=kind, auth_method=auth_method))


@contextmanager
def bound(origin: Origin) -> Iterator[None]:
    """Make `origin` the current one inside the block."""
    token = _current.set(origin)
    try:
        yield
    finally:
        _current.reset(token)
