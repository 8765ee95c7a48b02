"""The mechanism of permissions."""

import pytest

from controlplane.common import denials, permissions
from controlplane.tenancy.models import Tenant
from tests.factories import make_admin, make_tenant, make_user

pytestmark = pytest.mark.django_db


def test_what_is_allowed_passes_silently() -> None:
    with denials.collected() as refused:
        permissions.require(make_admin(), "tenancy.add_tenant")

    assert refused == []


def test_a_denial_has_facts_for_people_and_machines() -> None:
    tenant = make_tenant()

    with pytest.raises(permissions.NotPermittedError) as denied:
        permissions.require(make_user(), "tenancy.change_tenant", tenant)

    assert denied.value.facts["needs"] == {
        "action": "tenancy.change_tenant", "object_type": "tenancy.tenant",
    }  # fmt: skip
    assert denied.value.facts["ask"] == ["platform-admin", "tenant-admin"]


def test_rows_are_restricted_to_what_the_user_may() -> None:
    tenant = make_tenant()

    assert list(
        permissions.restrict(Tenant.objects.all(), make_admin(), "tenancy.view_tenant")
    ) == [tenant]
    assert not permissions.restrict(Tenant.objects.all(), make_user(), "tenancy.view_tenant")
