"""Who may see which rows; people of a tenant see none, since a plan shows the whole fleet."""

from typing import TYPE_CHECKING

from django.db.models import OuterRef, QuerySet, Subquery

from controlplane.common import permissions
from controlplane.operations.models import Operation
from controlplane.planning.models import Advice, Scenario, ScenarioRun

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


def scenarios_for_viewer(viewer: "User") -> QuerySet[Scenario]:
    """Scenarios that are not retired, latest first, with the state of their latest run."""
    latest = ScenarioRun.objects.filter(scenario=OuterRef("pk")).order_by("-created_at")
    rows = (
        Scenario.objects.filter(retired_at__isnull=True)
        .select_related("created_by")
        .annotate(
            last_run=Subquery(latest.values("pk")[:1]),
            last_run_state=Subquery(latest.values("operation__state")[:1]),
            last_run_at=Subquery(latest.values("created_at")[:1]),
        )
    )
    return permissions.restrict(rows, viewer, "planning.view_scenario")


def runs_for_viewer(viewer: "User") -> QuerySet[ScenarioRun]:
    """Runs, latest first, with scenario and operation."""
    rows = ScenarioRun.objects.select_related("scenario", "operation", "created_by")
    return permissions.restrict(rows, viewer, "planning.view_scenario")


def advice_for_viewer(viewer: "User") -> QuerySet[Advice]:
    """Advice, latest first, with pool, run and the plan made from it."""
    rows = Advice.objects.select_related("pool", "run__scenario", "change_plan")
    return permissions.restrict(rows, viewer, "planning.view_scenario")


def open_run_count() -> int:
    """Runs that have not ended."""
    return ScenarioRun.objects.exclude(operation__state__in=Operation.ENDED).count()
