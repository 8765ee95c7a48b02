"""Organisations, tenants, projects."""

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.operations.models import OutboxEvent
from controlplane.tenancy import services
from controlplane.tenancy.errors import DuplicateError, TenantNotActiveError
from controlplane.tenancy.models import Organisation, Tenant
from tests.factories import make_admin, make_ana, make_ben, make_organisation, make_tenant
from tests.racing import at_the_same_time

pytestmark = pytest.mark.django_db


def test_a_tenant_is_created_with_entry_and_event() -> None:
    tenant = services.create_tenant(
        organisation_id=make_organisation().pk, slug="hanbit", name="Hanbit", actor=make_admin(),
        jurisdictions=["KR"], reason="contract",
    )  # fmt: skip

    assert (tenant.state, tenant.jurisdictions) == ("active", ["KR"])
    assert AuditEntry.objects.get(action="tenant.create").reason == "contract"
    assert OutboxEvent.objects.get().type == "consort.tenant.onboarded"


@pytest.mark.parametrize("slug", ["", "Hanbit", "-a", "a-", "a_b", "a" * 64, "한빛", "a\n"])
def test_a_slug_has_a_form(slug: str) -> None:
    with pytest.raises(ValidationError) as refused:
        services.create_organisation(slug=slug, name="A", actor=make_admin())

    assert "slug" in refused.value.error_dict


@pytest.mark.parametrize("name", ["", "=1+1", "+1", "-1", "@x", "\tx", "\rx", "x" * 101])
def test_a_name_is_no_formula(name: str) -> None:
    with pytest.raises(ValidationError) as refused:
        services.create_organisation(slug="a", name=name, actor=make_admin())

    assert "name" in refused.value.error_dict


@pytest.mark.django_db(transaction=True)
def test_of_six_who_want_one_slug_one_gets_it() -> None:
    admin = make_admin()

    outcomes = at_the_same_time(
        6, services.create_organisation, slug="hanbit", name="Hanbit", actor=admin
    )

    assert outcomes == ["DuplicateError"] * 5 + ["Organisation"]
    assert Organisation.objects.count() == 1


def test_two_tenants_may_have_projects_of_one_name() -> None:
    ana, ben = make_ana(), make_ben()
    services.create_project(tenant_id=ana.tenant_id, slug="chat", name="Chat", actor=ana)
    services.create_project(tenant_id=ben.tenant_id, slug="chat", name="Chat", actor=ben)

    with pytest.raises(DuplicateError, match="project with the slug 'chat'"):
        services.create_project(tenant_id=ana.tenant_id, slug="chat", name="Chat", actor=ana)


def test_suspending_and_resuming_are_each_done_once() -> None:
    tenant, admin = make_tenant(), make_admin()

    for _ in range(2):
        services.suspend_tenant(tenant_id=tenant.pk, actor=admin, reason="unpaid")
    for _ in range(2):
        services.resume_tenant(tenant_id=tenant.pk, actor=admin, reason="paid")

    actions = list(AuditEntry.objects.order_by("time").values_list("action", flat=True))
    types = list(OutboxEvent.objects.order_by("created_at").values_list("type", flat=True))
    assert actions == ["tenant.suspend", "tenant.resume"]
    assert types == ["consort.tenant.suspended", "consort.tenant.resumed"]


def test_a_retired_tenant_stays_retired() -> None:
    tenant, admin = make_tenant(), make_admin()
    services.retire_tenant(tenant_id=tenant.pk, actor=admin, reason="over")
    services.retire_tenant(tenant_id=tenant.pk, actor=admin, reason="over")

    with pytest.raises(TenantNotActiveError, match="is retired"):
        services.resume_tenant(tenant_id=tenant.pk, actor=admin, reason="again")


def test_a_change_says_what_changed() -> None:
    tenant, admin = make_tenant(name="A", jurisdictions=["KR"]), make_admin()

    services.change_tenant(tenant_id=tenant.pk, actor=admin, reason="moved", jurisdictions=[])

    entry = AuditEntry.objects.get()
    assert (entry.before, entry.after) == ({"jurisdictions": ["KR"]}, {"jurisdictions": []})


def test_ben_changes_nothing_of_anas() -> None:
    ana, ben = make_ana(), make_ben()

    with pytest.raises(NotPermittedError):
        services.change_tenant(tenant_id=ana.tenant_id, actor=ben, reason="x", name="Ben's")
    with pytest.raises(NotPermittedError):
        services.create_project(tenant_id=ana.tenant_id, slug="x", name="X", actor=ben)


def test_the_database_refuses_a_retired_tenant_without_a_date() -> None:
    tenant = make_tenant()

    with pytest.raises(IntegrityError, match="retired_at_iff_retired"), transaction.atomic():
        Tenant.objects.filter(pk=tenant.pk).update(state="retired")
