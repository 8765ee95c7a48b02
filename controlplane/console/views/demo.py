"""Ends a process of the demo on purpose."""

import logging

import httpx
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console import plug

logger = logging.getLogger(__name__)


@require_POST
@login_required
def pull(request: ConsoleRequest) -> HttpResponse:
    """End one process of the kind in the form; 404 where the installation is not a demo."""
    module = plug.module()
    kind = request.POST.get("kind", "")
    if module is None or kind not in module.choices():
        raise Http404
    permissions.require(request.user, plug.PERMISSION)
    try:
        name = module.pull(
            kind, engine_host_url=settings.ENGINE_HOST_URL, token=settings.ENGINE_HOST_TOKEN
        )
    except (httpx.HTTPError, OSError, module.NothingToEndError) as error:
        logger.warning("The plug of %s was not pulled: %s", kind, error)
        messages.error(request, _("Nothing was ended: %(why)s") % {"why": error})
    else:
        audit.record(
            actor=request.user, action="demo.pull_plug", subject=request.user, message=name
        )
        messages.warning(request, _("Ended without warning: %(name)s.") % {"name": name})
    return redirect("console:overview")
