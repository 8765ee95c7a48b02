"""Collects what was refused during a request, so that it can be recorded after its rollback."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Model

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

LIMIT = 100


@dataclass(frozen=True, slots=True)
class Denial:
    """Somebody tried an action that no role of theirs has."""

    actor: "User"
    action: str
    subject: Model | None


_current: ContextVar[list[Denial] | None] = ContextVar("denials", default=None)


def note(denial: Denial) -> None:
    """Remember a denial; outside of `collected` it is not."""
    denials = _current.get()
    if denials is not None and len(denials) < LIMIT:
        denials.append(denial)


@contextmanager
def collected() -> Iterator[list[Denial]]:
    """Collect the denials of the block, at most LIMIT."""
    denials: list[Denial] = []
    token = _current.set(denials)
    try:
        yield denials
    finally:
        _current.reset(token)
