"""What people answer to findings in the console."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from controlplane.common.errors import DomainError
from controlplane.common.http import ConsoleRequest
from inventory import selectors, services
from inventory.forms import ReasonForm

ANSWERS: Mapping[str, Callable[..., Any]] = {
    "accept": services.accept_finding,
    "override": services.override_finding,
    "dismiss": services.dismiss_finding,
}


class AcceptForm(ReasonForm):
    """The reason, and the model of a node of which no source names one."""

    model = forms.SlugField(max_length=100, required=False)


class AcceptManyForm(AcceptForm):
    """All open findings of a cluster and a kind."""

    cluster = forms.SlugField(max_length=100)
    kind = forms.SlugField(max_length=32)


@require_POST
@login_required
def finding_answer(request: ConsoleRequest, pk: UUID, answer: str) -> HttpResponse:
    """Accept, override or dismiss one finding, with a reason."""
    service = ANSWERS.get(answer)
    if service is None:
        raise Http404
    finding = get_object_or_404(selectors.findings_for_viewer(request.user), pk=pk)
    form = AcceptForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Say why: the audit keeps the reason."))
        return _back(request)
    ask = {"finding_id": finding.pk, "reason": form.cleaned_data["reason"], "actor": request.user}
    if answer == "accept":
        ask["model"] = form.cleaned_data["model"]
    try:
        closed = service(**ask)
    except DomainError as error:
        messages.error(request, error.told)
    else:
        said = {"name": closed.hostname, "state": closed.get_state_display()}
        messages.success(request, _("Finding about %(name)s: %(state)s.") % said)
    return _back(request)


@require_POST
@login_required
def findings_accept(request: ConsoleRequest) -> HttpResponse:
    """Accept all open findings of a cluster and a kind; leads to the operation that does it."""
    form = AcceptManyForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Say why: the audit keeps the reason."))
        return _back(request)
    try:
        operation = services.start_accepting(actor=request.user, **form.cleaned_data)
    except DomainError as error:
        messages.error(request, error.told)
        return _back(request)
    return redirect("console:operation", operation.pk)


def _back(request: HttpRequest) -> HttpResponse:
    target = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure()):
        return redirect(target)
    return redirect("console:findings")
