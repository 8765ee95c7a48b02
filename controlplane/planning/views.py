"""What people do in planning's pages; pages that only read are in `console`."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from controlplane.common import permissions
from controlplane.common.errors import DomainError
from controlplane.common.http import ConsoleRequest
from controlplane.planning import savings, selectors, services
from controlplane.planning.forms import SavingsForm, ScenarioForm, starting_values
from controlplane.serving import selectors as serving
from controlplane.serving.models import Pool

MEASURED = timedelta(minutes=30)
"""Of the load that a new scenario starts with."""


@login_required
def scenario_add(request: ConsoleRequest) -> HttpResponse:
    """A new scenario from the fleet as it is; stored and run at once."""
    permissions.require(request.user, "planning.add_scenario")
    pool = _pool(request)
    load = None
    if pool is not None and request.method == "GET":
        now = timezone.now()
        load = selectors.measured_load(pool, since=now - MEASURED, until=now)
    form = ScenarioForm(
        request.POST or None, viewer=request.user, initial=starting_values(pool, load)
    )
    if request.method == "POST" and form.is_valid():
        try:
            # A scenario whose run is refused would take the name that the next try has, too.
            with transaction.atomic():
                scenario = services.create_from_fleet(
                    name=form.cleaned_data["name"], question=form.question(), actor=request.user
                )
                run = services.run_scenario(scenario_id=scenario.pk, actor=request.user)
        except DomainError as error:
            form.add_error(None, error.told)
        except ValidationError as error:
            form.add_error(None, error.messages)
        else:
            return redirect("console:scenario-run", run.pk)
    pools = serving.pools_for_viewer(request.user).filter(state=Pool.State.ACTIVE)
    context = {"form": form, "load": load, "chosen": pool, "pools": pools}
    return render(
        request, "planning/scenario_add.html", context, status=422 if form.errors else 200
    )


@require_POST
@login_required
def scenario_run(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Run a scenario as it is."""
    scenario = get_object_or_404(selectors.scenarios_for_viewer(request.user), pk=pk)
    try:
        run = services.run_scenario(scenario_id=scenario.pk, actor=request.user)
    except DomainError as error:
        messages.error(request, error.told)
        return redirect("console:scenario", scenario.pk)
    return redirect("console:scenario-run", run.pk)


@require_POST
@login_required
def scenario_retire(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Take a scenario from the list."""
    scenario = get_object_or_404(selectors.scenarios_for_viewer(request.user), pk=pk)
    try:
        services.retire_scenario(scenario_id=scenario.pk, actor=request.user)
    except DomainError as error:
        messages.error(request, error.told)
        return redirect("console:scenario", scenario.pk)
    messages.success(request, _("Retired: %(name)s.") % {"name": scenario.name})
    return redirect("console:planning")


@require_POST
@login_required
def run_cancel(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Ask for the end of a run."""
    run = get_object_or_404(selectors.runs_for_viewer(request.user), pk=pk)
    try:
        services.cancel_run(run_id=run.pk, actor=request.user)
    except DomainError as error:
        messages.error(request, error.told)
    return redirect("console:scenario-run", run.pk)


@require_POST
@login_required
def advice_plan(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Draft the change plan of an advice."""
    advice = get_object_or_404(selectors.advice_for_viewer(request.user), pk=pk)
    try:
        plan = services.make_change_plan(advice_id=advice.pk, actor=request.user)
    except DomainError as error:
        messages.error(request, error.told)
        if advice.run_id is None:
            return redirect("console:advice", advice.pk)
        return redirect("console:scenario-run", advice.run_id)
    return redirect("console:change", plan.pk)


@login_required
def savings_calculator(request: ConsoleRequest) -> HttpResponse:
    """Arithmetic on stated figures; nothing is stored, so the address holds the question."""
    permissions.require(request.user, "planning.view_scenario")
    form = SavingsForm(request.GET or None)
    found = savings.compute(form.question()) if form.is_bound and form.is_valid() else None
    context = {"form": form, "saving": found, "currency": settings.LEDGER_CURRENCY}
    return render(request, "planning/savings.html", context, status=422 if form.errors else 200)


def _pool(request: ConsoleRequest) -> Pool | None:
    slug = request.GET.get("pool", "")[:120]
    return serving.pools_for_viewer(request.user).filter(slug=slug).first() if slug else None
