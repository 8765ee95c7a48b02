"""Where a live race shows its figures, and its viewers show that they are there: the cache.

A snapshot is written a few times a second and of no use a minute later, so it is no row. Everything
here may vanish at any time; readers then have no data.
"""

from datetime import datetime
from uuid import UUID

import msgspec
from django.core.cache import cache
from django.utils import timezone

from routing.simulator.live.duel import View

KEEP_SECONDS = 3600
"""The last figures of a race that has ended stay this long."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A race at one moment."""

    written_at: datetime
    pace: float
    """Virtual seconds per second that were reached of late."""
    view: View


def publish(race_id: UUID, snapshot: Snapshot) -> None:
    """Replace what the race shows."""
    cache.set(_figures(race_id), msgspec.json.encode(snapshot), KEEP_SECONDS)


def snapshot_of(race_id: UUID) -> Snapshot | None:
    """What the race shows; None before its first figures, and once they are gone."""
    found = cache.get(_figures(race_id))
    if found is None:
        return None
    try:
        return msgspec.json.decode(found, type=Snapshot)
    except msgspec.DecodeError:
        return None  # Of a race under another version of this program.


def watch(race_id: UUID) -> None:
    """Somebody looks at the race."""
    cache.set(_viewers(race_id), timezone.now(), KEEP_SECONDS)


def watched_at(race_id: UUID) -> datetime | None:
    """When somebody looked last; None if nobody did."""
    found: datetime | None = cache.get(_viewers(race_id))
    return found


def _figures(race_id: UUID) -> str:
    return f"live-race:{race_id}:figures"


def _viewers(race_id: UUID) -> str:
    return f"live-race:{race_id}:viewers"
