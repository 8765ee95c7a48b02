"""Does enough capacity stay in service during every wave, and can the pool answer afterwards?"""

from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from controlplane.serving import selectors
from controlplane.serving.checks.base import CheckResult, Verdict
from controlplane.serving.plans import (
    floor_count,
    items_of,
    lowest_count,
    role_counts,
    roles_after,
    waves_of,
)

if TYPE_CHECKING:
    from controlplane.serving.models import ChangePlan


def check(plan: "ChangePlan") -> CheckResult:
    """Block if a wave goes below the floor, or if afterwards nothing could answer clients."""
    before = {
        str(row.accelerator_id): row.assignment.role for row in selectors.open_roles(pool=plan.pool)
    }
    items = items_of(plan.diff)
    after = role_counts(roles_after(before, items))
    floor = floor_count(len(before), floor_share=plan.floor_share)
    lowest = lowest_count(len(before), waves_of(items, per_wave=plan.accelerators_per_wave))
    numbers = {
        "serving": len(before), "lowest": lowest, "floor": floor,
        "before": role_counts(before), "after": after,
    }  # fmt: skip
    verdict, sentence = _judge(lowest=lowest, floor=floor, serving=len(before), after=after)
    return CheckResult(verdict=verdict, sentence=sentence, numbers=numbers)


def _judge(*, lowest: int, floor: int, serving: int, after: dict[str, int]) -> tuple[Verdict, str]:
    if lowest < floor:
        text = _(
            "A wave leaves {lowest} of {serving} accelerators in service; the floor is {floor}."
        )
        return "block", text.format(lowest=lowest, serving=serving, floor=floor)
    if after["prefill"] and not after["decode"] + after["both"]:
        return "block", _("Afterwards no accelerator could answer clients: all would be prefill.")
    if not sum(after.values()):
        return "warn", _("Afterwards the pool has no accelerator and answers nobody.")
    if after["decode"] and not after["prefill"]:
        text = _("Afterwards no prefill is left: decode accelerators compute prompts themselves.")
        return "warn", text
    text = _("At least {lowest} of {serving} accelerators stay in service; the floor is {floor}.")
    return "pass", text.format(lowest=lowest, serving=serving, floor=floor)
