"""Denials of a request."""

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from controlplane.audit.middleware import DenialsMiddleware
from controlplane.audit.models import AuditEntry
from controlplane.common import permissions
from tests.factories import make_ana, make_tenant

pytestmark = pytest.mark.django_db


def test_a_denial_that_the_view_answered_is_recorded() -> None:
    ana, other = make_ana(), make_tenant()

    def view(request: HttpRequest) -> HttpResponse:
        with pytest.raises(permissions.NotPermittedError):
            permissions.require(ana, "tenancy.change_tenant", other)
        return HttpResponse("no")

    DenialsMiddleware(view)(RequestFactory().get("/"))

    entry = AuditEntry.objects.get()
    assert (entry.result, entry.object_id) == ("denied", str(other.pk))


def test_asking_without_trying_is_no_denial() -> None:
    ana = make_ana()

    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(str(permissions.allows(ana, "tenancy.add_tenant")))

    DenialsMiddleware(view)(RequestFactory().get("/"))

    assert not AuditEntry.objects.exists()
