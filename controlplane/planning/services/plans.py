"""From advice to a draft of a change plan; nothing is proposed, approved or applied here."""

from typing import TYPE_CHECKING
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.planning.errors import (
    AdviceNothingToDoError,
    AdviceNotPossibleError,
    AdviceTooWideError,
    AdviceWithoutPoolError,
)
from controlplane.planning.models import Advice
from controlplane.planning.steps import ShortageError, Step, steps_to
from controlplane.serving import selectors as serving_selectors
from controlplane.serving import services as serving
from controlplane.serving.models import ChangePlan, Pool

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

REASON_LENGTH = 300


@transaction.atomic
def make_change_plan(*, advice_id: UUID, actor: "User", reason: str = "") -> ChangePlan:
    """Draft the next step of an advice: accelerators that get one role.

    A split takes a plan for each role; made again after one is applied, the next comes. While the
    draft is open, a second call gives it back. Raises NotPermittedError, AdviceWithoutPoolError,
    AdviceNothingToDoError, AdviceNotPossibleError, AdviceTooWideError, or what `draft_plan` does.
    """
    advice = Advice.objects.select_for_update(no_key=True, of=("self",)).get(pk=advice_id)
    permissions.require(actor, "planning.run_scenario", advice)
    if advice.pool is None:
        raise AdviceWithoutPoolError(pool=advice.name)
    if advice.change_plan is not None and advice.change_plan.is_open:
        return advice.change_plan
    step = _next_step(advice, advice.pool)
    plan = serving.draft_plan(
        serving.PlanInput(
            pool_id=advice.pool.pk,
            role=step.role,
            reason=reason or reason_of(advice),
            accelerator_ids=[UUID(one) for one in step.accelerators],
        ),
        actor=actor,
    )
    advice.change_plan = plan
    advice.save(update_fields=["change_plan", "updated_at"])
    audit.record(
        actor=actor, action="advice.make-plan", subject=advice, after={"plan": plan.number}
    )
    return plan


def reason_of(advice: Advice) -> str:
    """The advice in a sentence, with its method and model error."""
    outcome = (advice.chosen or {}).get("outcome")
    text = _(
        "Advice for pool {pool}: {verdict}; {goodput} good requests/s, {gain} against now"
        " (simulated, model error {error} %)."
    )
    return text.format(
        pool=advice.name,
        verdict=Advice.Verdict(advice.verdict).label,
        goodput=_("unknown") if outcome is None else f"{outcome['goodput_rps']:.1f}",
        gain=_("unknown") if advice.gain is None else f"{100 * advice.gain:+.0f} %",
        error=f"{100 * advice.error_band['throughput']:.0f}",
    )[:REASON_LENGTH]


def _next_step(advice: Advice, pool: Pool) -> Step:
    chosen = advice.chosen
    if chosen is None or advice.verdict in {Advice.Verdict.KEEP, Advice.Verdict.IMPOSSIBLE}:
        raise AdviceNothingToDoError(pool=pool.name)
    widest = max((share["width"] for share in chosen["placement"]), default=1)
    if widest > 1:
        raise AdviceTooWideError(width=widest)
    roles = {
        str(row.accelerator_id): row.assignment.role
        for row in serving_selectors.open_roles(pool=pool)
    }
    everybody = {UUID(one) for group in advice.members.values() for one in group}
    taken = {
        str(row.accelerator_id) for row in serving_selectors.open_roles(accelerator_ids=everybody)
    }
    free = frozenset(str(one) for one in everybody) - taken
    wanted = {
        share["group"]: {role: share[role] for role in ("prefill", "decode", "both")}
        for share in chosen["placement"]
    }
    try:
        steps = steps_to(wanted, advice.members, roles, free=free)
    except ShortageError as error:
        raise AdviceNotPossibleError(
            group=error.group, pool=pool.name, needed=error.needed, there=error.there
        ) from error
    if not steps:
        raise AdviceNothingToDoError(pool=pool.name)
    return steps[0]
