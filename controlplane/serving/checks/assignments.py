"""Is every accelerator free for this change: in use, healthy, and nobody else's?"""

from typing import TYPE_CHECKING

from django.utils import timezone
from django.utils.translation import gettext as _

from controlplane.serving import selectors
from controlplane.serving.checks.base import CheckResult
from controlplane.serving.models import AssignedAccelerator
from controlplane.serving.plans import PlanItem, items_of
from inventory.freshness import is_stale
from inventory.models import Accelerator, Node

if TYPE_CHECKING:
    from controlplane.serving.models import ChangePlan


def check(plan: "ChangePlan") -> CheckResult:
    """Block on another pool's role, a node that takes nothing or no change; warn on health."""
    items = items_of(plan.diff)
    accelerators = Accelerator.objects.select_related("node").in_bulk(
        [item.accelerator for item in items], field_name="pk"
    )
    by_id = {str(key): value for key, value in accelerators.items()}
    numbers = {"accelerators": len(items)}
    blocked = (
        _of_another_pool(plan, items)
        or _name_taken(items)
        or _not_usable(items, by_id)
        or _unchanged(items)
        or _role_of_mode(plan)
    )
    if blocked:
        return CheckResult(verdict="block", sentence=blocked, numbers=numbers)
    ill = sorted(
        str(by_id[item.accelerator])
        for item in items
        if by_id[item.accelerator].health in {"degraded", "failed"}
    )
    if ill:
        sentence = _("Not healthy: {names}.").format(names=", ".join(ill))
        return CheckResult(verdict="warn", sentence=sentence, numbers=numbers)
    unseen = _unseen(items, by_id)
    if unseen:
        sentence = _("Health unknown, nobody observed them lately: {names}.").format(names=unseen)
        return CheckResult(verdict="warn", sentence=sentence, numbers=numbers)
    sentence = _("{count} accelerators are free for this change.").format(count=len(items))
    return CheckResult(verdict="pass", sentence=sentence, numbers=numbers)


def _unseen(items: list[PlanItem], by_id: dict[str, Accelerator]) -> str:
    """Nodes that get a role although nobody knows how they are."""
    now = timezone.now()
    return ", ".join(
        sorted(
            {
                item.hostname
                for item in items
                if item.to_role and is_stale(by_id[item.accelerator].node.observed_at, now=now)
            }
        )
    )


def _of_another_pool(plan: "ChangePlan", items: list[PlanItem]) -> str | None:
    rows = selectors.open_roles(accelerator_ids=[item.accelerator for item in items])  # type: ignore[misc]  # Django takes an id as text
    for row in rows.exclude(assignment__pool=plan.pool_id).select_related("accelerator__node"):
        return _("{accelerator} serves pool {pool}; release it there first.").format(
            accelerator=row.accelerator, pool=row.assignment.pool.name
        )
    return None


def _name_taken(items: list[PlanItem]) -> str | None:
    """Engines are named after host and slot, which a card that was replaced may still hold."""
    ours = {item.workload: item.accelerator for item in items if item.to_role}
    held = AssignedAccelerator.objects.filter(
        open=True, accelerator__workload__name__in=ours
    ).values_list("accelerator__workload__name", "accelerator")
    for name, accelerator in held:
        if str(accelerator) != ours[name]:
            return _(
                "The engine {name} belongs to another accelerator; release that first."
            ).format(name=name)
    return None


def _not_usable(items: list[PlanItem], by_id: dict[str, Accelerator]) -> str | None:
    for item in items:
        if not item.to_role:
            continue
        accelerator = by_id.get(item.accelerator)
        if accelerator is None or accelerator.state == Accelerator.State.RETIRED:
            return _("{host}, slot {slot}: the accelerator is retired.").format(
                host=item.hostname, slot=item.slot
            )
        if accelerator.state != Accelerator.State.READY:
            return _("{accelerator} is {state} and takes no new role.").format(
                accelerator=accelerator, state=accelerator.get_state_display()
            )
        if accelerator.node.state != Node.State.READY:
            return _("Node {node} is {state} and takes no new role.").format(
                node=item.hostname, state=accelerator.node.get_state_display()
            )
    return None


def _unchanged(items: list[PlanItem]) -> str | None:
    for item in items:
        if item.from_role == item.to_role:
            return _("{host}, slot {slot} has this role already.").format(
                host=item.hostname, slot=item.slot
            )
    return None


def _role_of_mode(plan: "ChangePlan") -> str | None:
    if plan.pool.role_mode == "unified" and plan.role not in {"", "both"}:
        return _("Pool {pool} is unified: its only role is “prefill and decode”.").format(
            pool=plan.pool.name
        )
    return None
