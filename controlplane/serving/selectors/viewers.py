"""Who may see which rows; people of a tenant see nothing of the fleet."""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import QuerySet

from controlplane.common import permissions
from controlplane.serving.models import (
    ChangePlan,
    Endpoint,
    Model,
    Pool,
    PoolDocument,
    RoleAssignment,
    Router,
    RouterPush,
    Wave,
    Workload,
)

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


def models_for_viewer(viewer: "User") -> QuerySet[Model]:
    """Models of the catalogue."""
    return permissions.restrict(Model.objects.all(), viewer, "serving.view_model")


def pools_for_viewer(viewer: "User") -> QuerySet[Pool]:
    """Pools with their model and its files."""
    rows = Pool.objects.select_related("model", "artefact")
    return permissions.restrict(rows, viewer, "serving.view_pool")


def assignments_for_viewer(
    viewer: "User", *, at: datetime | None = None
) -> QuerySet[RoleAssignment]:
    """The role ledger, latest first, with pool, node, plan and accelerators; `at` a moment."""
    periods = RoleAssignment.objects.all() if at is None else RoleAssignment.objects.at(at)
    rows = periods.select_related("pool", "node", "change_plan").prefetch_related("accelerators")
    return permissions.restrict(rows, viewer, "serving.view_roleassignment")


def plans_for_viewer(viewer: "User") -> QuerySet[ChangePlan]:
    """Plans, latest first, with pool, author and approvals."""
    rows = ChangePlan.objects.select_related("pool", "author").prefetch_related(
        "approvals__approver", "waves"
    )
    return permissions.restrict(rows, viewer, "serving.view_changeplan")


def waves_for_viewer(viewer: "User") -> QuerySet[Wave]:
    """Waves with their plan."""
    rows = Wave.objects.select_related("plan")
    return permissions.restrict(rows, viewer, "serving.view_changeplan")


def workloads_for_viewer(viewer: "User") -> QuerySet[Workload]:
    """Deployments with pool, node and accelerator."""
    rows = Workload.objects.select_related("pool", "node", "accelerator")
    return permissions.restrict(rows, viewer, "serving.view_workload")


def endpoints_for_viewer(viewer: "User") -> QuerySet[Endpoint]:
    """Endpoints, also those that are gone, with workload, pool and node."""
    rows = Endpoint.objects.select_related("workload", "pool", "node")
    return permissions.restrict(rows, viewer, "serving.view_endpoint")


def routers_for_viewer(viewer: "User") -> QuerySet[Router]:
    """Routers by name."""
    return permissions.restrict(Router.objects.all(), viewer, "serving.view_router")


def documents_for_viewer(viewer: "User") -> QuerySet[PoolDocument]:
    """Pool documents without their content, which holds hashed keys."""
    rows = PoolDocument.objects.select_related("pool", "author").defer("content")
    return permissions.restrict(rows, viewer, "serving.view_pooldocument")


def pushes_for_viewer(viewer: "User") -> QuerySet[RouterPush]:
    """Pushes, latest first, with router and document."""
    rows = RouterPush.objects.select_related("router", "document__pool").defer("document__content")
    return permissions.restrict(rows, viewer, "serving.view_routerpush")
