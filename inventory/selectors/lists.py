"""Rows that a person may see, with what lists show of them; one query each.

Health here is what may be claimed at the present time: `effective_health` is unknown where the last
observation is stale, whether or not a task has already marked the row.
"""

from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from django.db.models import (
    Case,
    CharField,
    Count,
    F,
    IntegerField,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from controlplane.common import permissions
from inventory.freshness import cutoff
from inventory.models import (
    Accelerator,
    AcceleratorModel,
    Cluster,
    Finding,
    ImportRun,
    Node,
    NodeType,
    Observation,
    Site,
)
from inventory.models.words import Health, HealthReason

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

M = TypeVar("M", bound=Model)
Observed = TypeVar("Observed", Node, Accelerator)


def nodes_for_viewer(user: "User", *, now: datetime | None = None) -> QuerySet[Node]:
    """Nodes with site, type and model joined, by hostname; retired ones too.

    Annotated: `accelerator_count` (live devices), `healthy_accelerators`, `open_findings`,
    `effective_health`, `effective_reason`, `site_slug`, `cluster_slug`, `model_slug`.
    """
    rows = Node.objects.select_related("cluster__site", "node_type__accelerator_model").annotate(
        accelerator_count=_number_of(_live()),
        healthy_accelerators=_number_of(
            _live().filter(health=Health.HEALTHY, observed_at__gte=cutoff(now))
        ),
        open_findings=_number_of(Finding.objects.filter(state=Finding.State.OPEN)),
        site_slug=F("cluster__site__slug"),
        cluster_slug=F("cluster__slug"),
        model_slug=F("node_type__accelerator_model__slug"),
    )
    return permissions.restrict(_with_health(rows, now), user, "inventory.view_node")


def accelerators_for_viewer(user: "User", *, now: datetime | None = None) -> QuerySet[Accelerator]:
    """Accelerators with node, site and model joined, by hostname and slot; retired ones too.

    Annotated: `effective_health`, `effective_reason`.
    """
    rows = Accelerator.objects.select_related("node__cluster__site", "model")
    ordered = _with_health(rows, now).order_by("node__hostname", "slot", "pk")
    return permissions.restrict(ordered, user, "inventory.view_accelerator")


def sites_for_viewer(user: "User") -> QuerySet[Site]:
    """Sites, annotated with `node_count` (not retired)."""
    nodes = Node.objects.exclude(state=Node.State.RETIRED)
    rows = Site.objects.annotate(node_count=_number_of(nodes, "cluster__site"))
    return permissions.restrict(rows, user, "inventory.view_site")


def clusters_for_viewer(user: "User") -> QuerySet[Cluster]:
    """Clusters with their site, annotated with `node_count` (not retired)."""
    nodes = Node.objects.exclude(state=Node.State.RETIRED)
    rows = Cluster.objects.select_related("site").annotate(node_count=_number_of(nodes, "cluster"))
    return permissions.restrict(rows, user, "inventory.view_cluster")


def models_for_viewer(user: "User") -> QuerySet[AcceleratorModel]:
    """The catalogue, annotated with `accelerator_count` (live devices of the fleet)."""
    rows = AcceleratorModel.objects.annotate(accelerator_count=_number_of(_live(), "model"))
    return permissions.restrict(rows, user, "inventory.view_acceleratormodel")


def node_types_for_viewer(user: "User") -> QuerySet[NodeType]:
    """Types of nodes with their model, annotated with `node_count` (not retired)."""
    nodes = Node.objects.exclude(state=Node.State.RETIRED)
    rows = NodeType.objects.select_related("accelerator_model").annotate(
        node_count=_number_of(nodes, "node_type")
    )
    return permissions.restrict(rows, user, "inventory.view_nodetype")


def findings_for_viewer(user: "User") -> QuerySet[Finding]:
    """Findings with node, cluster and who closed them, oldest first, closed ones too."""
    rows = Finding.objects.select_related("node", "cluster", "closed_by", "observation")
    return permissions.restrict(rows, user, "inventory.view_finding")


def observations_for_viewer(user: "User") -> QuerySet[Observation]:
    """Observations with node and cluster, latest first."""
    rows = Observation.objects.select_related("node", "cluster")
    return permissions.restrict(rows, user, "inventory.view_observation")


def imports_for_viewer(user: "User") -> QuerySet[ImportRun]:
    """Files that were read, latest first."""
    rows = ImportRun.objects.select_related("created_by")
    return permissions.restrict(rows, user, "inventory.view_importrun")


def _live() -> QuerySet[Accelerator]:
    return Accelerator.objects.exclude(state=Accelerator.State.RETIRED)


def _number_of(rows: QuerySet[M], path: str = "node") -> Coalesce:
    """How many of the rows point at the outer row; 0 where none does, which is a fact."""
    counted = (
        rows.filter(**{path: OuterRef("pk")})
        .order_by()
        .values(path)
        .annotate(number=Count("pk"))
        .values("number")
    )
    return Coalesce(Subquery(counted, output_field=IntegerField()), Value(0))


def _with_health(rows: QuerySet[Observed], now: datetime | None) -> QuerySet[Observed]:
    """Stale observations say nothing; health that is unknown already keeps its reason."""
    is_stale = Q(observed_at__lt=cutoff(now)) & ~Q(health=Health.UNKNOWN)
    return rows.annotate(
        effective_health=Case(
            When(is_stale, then=Value(Health.UNKNOWN)),
            default=F("health"),
            output_field=CharField(),
        ),
        effective_reason=Case(
            When(is_stale, then=Value(HealthReason.STALE)),
            default=F("health_reason"),
            output_field=CharField(),
        ),
    )
