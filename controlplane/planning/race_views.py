"""What people do with a live race: start, rate, stop. The page that shows it is in `console`."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from controlplane.common.errors import DomainError
from controlplane.common.http import ConsoleRequest, wants_fragment
from controlplane.planning import services
from controlplane.planning.errors import RaceNotRunningError
from controlplane.planning.forms import RaceForm


@require_POST
@login_required
def race_start(request: ConsoleRequest) -> HttpResponse:
    """Start a race at the rate of the slider; with `afresh`, instead of the one that runs."""
    form = RaceForm(request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(error) for error in form.errors["rate"]))
        return redirect("console:race")
    try:
        services.start_race(
            actor=request.user, rate_qps=form.cleaned_data["rate"], afresh="afresh" in request.POST
        )
    except DomainError as error:
        messages.error(request, error.told)
    return redirect("console:race")


@require_POST
@login_required
def race_rate(request: ConsoleRequest) -> HttpResponse:
    """Another rate, from the slider as it moves (nothing to swap) or from the form's button."""
    form = RaceForm(request.POST)
    is_quiet = wants_fragment(request)
    if not form.is_valid():
        if is_quiet:
            return HttpResponse(status=422)
        messages.error(request, " ".join(str(error) for error in form.errors["rate"]))
        return redirect("console:race")
    try:
        services.change_rate(actor=request.user, rate_qps=form.cleaned_data["rate"])
    except RaceNotRunningError as error:
        # The slider moves before a start, too; then it says what the start will take.
        if not is_quiet:
            messages.error(request, error.told)
    return HttpResponse(status=204) if is_quiet else redirect("console:race")


@require_POST
@login_required
def race_stop(request: ConsoleRequest) -> HttpResponse:
    """End one's race."""
    services.stop_race(actor=request.user)
    return redirect("console:race")
