"""Live races: everybody sees their own."""

from typing import TYPE_CHECKING

from controlplane.common import permissions
from controlplane.planning.models import LiveRace

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


def latest_race(viewer: "User") -> LiveRace | None:
    """The viewer's own race that is open, or the last one that was."""
    rows = LiveRace.objects.filter(created_by=viewer).select_related("operation")
    return permissions.restrict(rows, viewer, "planning.view_scenario").first()


def race_slots_taken() -> set[int]:
    """Slots of all races that are open, whoever's they are."""
    return set(LiveRace.objects.filter(ended_at__isnull=True).values_list("slot", flat=True))
