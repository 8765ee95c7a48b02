"""Operations, audit entries and search."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from controlplane.audit.models import AuditEntry
from controlplane.common import permissions
from controlplane.operations.models import Operation
from controlplane.serving.models import ChangePlan, Pool, Router
from controlplane.tenancy.models import User
from inventory.models import Node

OPEN_STATES = (Operation.State.PENDING, Operation.State.RUNNING)


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of the search."""

    kind: object
    name: str
    note: str
    route: str
    key: str


def operations_for(user: User) -> QuerySet[Operation]:
    """Operations that the person may see, newest first; their own are always among them."""
    allowed = permissions.restrict(Operation.objects.all(), user, "operations.view_operation")
    rows = Operation.objects.filter(Q(pk__in=allowed.values("pk")) | Q(created_by=user))
    return rows.select_related("created_by")


def running_operations(user: User) -> int:
    """How many of them have not ended."""
    return operations_for(user).filter(state__in=OPEN_STATES).count()


def audit_entries_for(user: User) -> QuerySet[AuditEntry]:
    """Audit entries that the person may see, newest first."""
    rows = AuditEntry.objects.select_related("actor")
    return permissions.restrict(rows, user, "audit.view_auditentry")


def search(user: User, text: str, *, limit: int = 20) -> list[Hit]:
    """Nodes, pools, plans and routers whose name holds the text, `limit` of each at most."""
    nodes = permissions.restrict(Node.objects.all(), user, "inventory.view_node")
    pools = permissions.restrict(Pool.objects.all(), user, "serving.view_pool")
    plans = permissions.restrict(ChangePlan.objects.all(), user, "serving.view_changeplan")
    routers = permissions.restrict(Router.objects.all(), user, "serving.view_router")
    found = Q(hostname__icontains=text) | Q(accelerators__serial__iexact=text)
    hits = [
        Hit(_("node"), node.hostname, str(node.get_state_display()), "console:node", str(node.pk))
        for node in nodes.filter(found).distinct()[:limit]
    ]
    hits += [
        Hit(_("pool"), pool.slug, pool.name, "console:pool", str(pool.pk))
        for pool in pools.filter(Q(slug__icontains=text) | Q(name__icontains=text))[:limit]
    ]
    hits += [
        Hit(_("change plan"), plan.number, plan.reason, "console:change", str(plan.pk))
        for plan in plans.filter(_plan_matches(text))[:limit]
    ]
    hits += [
        Hit(_("router"), router.name, router.public_url, "console:routers", "")
        for router in routers.filter(name__icontains=text)[:limit]
    ]
    return hits


def _plan_matches(text: str) -> Q:
    digits = text.upper().removeprefix("CP-").lstrip("0")
    by_serial = Q(serial=int(digits)) if digits.isdigit() and len(digits) < 9 else Q()
    return by_serial or Q(reason__icontains=text)
