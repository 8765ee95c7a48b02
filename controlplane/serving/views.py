"""What people do to plans and pools in the console; pages that only read are in `console`."""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from controlplane.common import permissions
from controlplane.common.errors import DomainError
from controlplane.common.http import ConsoleRequest
from controlplane.serving import selectors, services
from controlplane.serving.forms import (
    GatewayRulesForm,
    PlanForm,
    PolicyForm,
    RolloutForm,
    SloForm,
    candidates,
)
from controlplane.serving.models import ChangePlan, Pool
from controlplane.tenancy.models import User

Act = Callable[[ChangePlan, User, str], ChangePlan]

_ACTS: dict[str, Act] = {
    "propose": lambda plan, actor, _note: services.propose_plan(plan_id=plan.pk, actor=actor),
    "approve": lambda plan, actor, note: services.approve_plan(
        plan_id=plan.pk, actor=actor, comment=note
    ),
    "reject": lambda plan, actor, note: services.reject_plan(
        plan_id=plan.pk, actor=actor, reason=note
    ),
    "apply": lambda plan, actor, _note: services.apply_plan(plan_id=plan.pk, actor=actor),
    "pause": lambda plan, actor, note: services.pause_plan(
        plan_id=plan.pk, actor=actor, reason=note
    ),
    "resume": lambda plan, actor, note: services.resume_plan(
        plan_id=plan.pk, actor=actor, reason=note
    ),
    "cancel": lambda plan, actor, note: services.cancel_plan(
        plan_id=plan.pk, actor=actor, reason=note
    ),
    "rollback": lambda plan, actor, note: services.rollback_plan(
        plan_id=plan.pk, actor=actor, reason=note
    ),
}
_NEEDS_REASON = frozenset({"reject", "rollback"})


@login_required
def change_add(request: ConsoleRequest) -> HttpResponse:
    """The select step: nodes, pool, role and limits; makes a draft."""
    permissions.require(request.user, "serving.add_changeplan")
    ticked = _uuids(request.POST.getlist("node") or request.GET.getlist("node"))
    form = PlanForm(
        request.POST or None, viewer=request.user, initial={"pool": request.GET.get("pool")}
    )
    if request.method == "POST" and form.is_valid():
        try:
            plan = services.draft_plan(form.wish(ticked), actor=request.user)
        except DomainError as error:
            form.add_error(None, error.told)
        except ValidationError as error:
            form.add_error(None, error.messages)
        else:
            return redirect("console:change", plan.pk)
    context = {"form": form, "candidates": candidates(request.user), "ticked": set(ticked)}
    return render(request, "serving/change_add.html", context, status=422 if form.errors else 200)


@require_POST
@login_required
def change_act(request: ConsoleRequest, pk: UUID, verb: str) -> HttpResponse:
    """Propose, approve, reject, apply, pause, resume, cancel or roll back a plan."""
    plan = get_object_or_404(selectors.plans_for_viewer(request.user), pk=pk)
    act = _ACTS.get(verb)
    if act is None:
        raise Http404
    note = request.POST.get("note", "").strip()[:300]
    if verb in _NEEDS_REASON and not note:
        messages.error(request, _("Say why: the author and the audit read it."))
        return redirect("console:change", plan.pk)
    try:
        act(plan, request.user, note)
    except DomainError as error:
        messages.error(request, error.told)
    return redirect("console:change", plan.pk)


@require_POST
@login_required
def pool_policy(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Set another routing policy; routers get it with the next document."""
    pool = get_object_or_404(selectors.pools_for_viewer(request.user), pk=pk)
    form = PolicyForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Choose a policy and say why: the audit keeps the reason."))
        return redirect("console:pool", pool.pk)
    try:
        services.change_policy(pool_id=pool.pk, actor=request.user, **form.cleaned_data)
    except DomainError as error:
        messages.error(request, error.told)
    else:
        messages.success(
            request, _("Policy: %(policy)s. Routers get it with the next document.")
            % {"policy": form.cleaned_data["policy"]},
        )  # fmt: skip
    return redirect("console:pool", pool.pk)


@login_required
def pool_slo(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Set targets and rules of waiting; routers get them with the next document."""
    return _settings_page(
        request,
        pk,
        form_class=SloForm,
        change=services.change_slo,
        template="serving/pool_slo.html",
        done=_("The SLO is changed. Routers get it with the next document."),
    )


@login_required
def pool_gateway(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Set objectives and rewrites of models; routers get them with the next document."""
    return _settings_page(
        request,
        pk,
        form_class=GatewayRulesForm,
        change=services.change_gateway_rules,
        template="serving/pool_gateway.html",
        done=_("Objectives and rewrites are changed. Routers get them with the next document."),
    )


@login_required
def pool_rollout(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Set how routers get new settings, and whether drift is put right."""
    return _settings_page(
        request,
        pk,
        form_class=RolloutForm,
        change=services.change_rollout,
        template="serving/pool_rollout.html",
        done=_("Saved. It holds from the next change on."),
    )


def _settings_page(
    request: ConsoleRequest,
    pk: UUID,
    *,
    form_class: type[SloForm] | type[GatewayRulesForm] | type[RolloutForm],
    change: Callable[..., Pool],
    template: str,
    done: str,
) -> HttpResponse:
    """A form for some settings of a pool; wrong entries come back with what is wrong."""
    pool = get_object_or_404(selectors.pools_for_viewer(request.user), pk=pk)
    permissions.require(request.user, "serving.change_pool", pool)
    form = form_class(request.POST or None, pool=pool)
    if request.method == "POST" and form.is_valid():
        reason = form.cleaned_data["reason"]
        try:
            change(pool_id=pool.pk, changes=form.changes(), reason=reason, actor=request.user)
        except DomainError as error:
            form.add_error(None, error.told)
        except ValidationError as error:
            form.add_error(None, error.messages)
        else:
            messages.success(request, done)
            return redirect("console:pool", pool.pk)
    context = {"form": form, "pool": pool}
    return render(request, template, context, status=422 if form.errors else 200)


def _uuids(texts: list[str]) -> list[UUID]:
    found = []
    for text in texts:
        try:
            found.append(UUID(text))
        except ValueError:
            continue
    return found
