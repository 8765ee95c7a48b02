"""The shipped roles."""

import pytest

from controlplane.common import permissions
from controlplane.tenancy.models import Role, Tenant, User
from controlplane.tenancy.permissions import role_allows, scopes_allow
from tests.factories import make_admin, make_ana, make_ben, make_project, make_user

MAY = [
    (Role.PLATFORM_ADMIN, "inventory.add_node"),
    (Role.PLATFORM_ADMIN, "tenancy.add_tenant"),
    (Role.FLEET_OPERATOR, "inventory.cordon_node"),
    (Role.FLEET_OPERATOR, "serving.view_pool"),
    (Role.FLEET_OPERATOR, "operations.retry_operation"),
    (Role.ROLE_ASSIGNER, "serving.add_changeplan"),
    (Role.ROLE_ASSIGNER, "serving.propose_changeplan"),
    (Role.ROLE_ASSIGNER, "serving.apply_changeplan"),
    (Role.ROLE_ASSIGNER, "serving.rollback"),
    (Role.APPROVER, "serving.approve_changeplan"),
    (Role.APPROVER, "serving.reject_changeplan"),
    (Role.ROUTER_ENGINEER, "serving.publish_pooldocument"),
    (Role.ROUTER_ENGINEER, "serving.change_pool"),
    (Role.TENANT_ADMIN, "tenancy.issue_key"),
    (Role.TENANT_ADMIN, "tenancy.add_project"),
    (Role.TENANT_ADMIN, "tenancy.view_organisation"),
    (Role.TENANT_VIEWER, "metering.view_usagehour"),
    (Role.FINANCE, "finance.view_ledger"),
    (Role.FINANCE, "inventory.view_node"),
    (Role.AUDITOR, "audit.view_auditentry"),
    (Role.AUDITOR, "finance.view_ledger"),
    (Role.READONLY, "inventory.view_node"),
]
MAY_NOT = [
    (Role.PLATFORM_ADMIN, "serving.approve_changeplan"),
    (Role.FLEET_OPERATOR, "serving.assign_role"),
    (Role.FLEET_OPERATOR, "finance.view_ledger"),
    (Role.ROLE_ASSIGNER, "serving.approve_changeplan"),
    (Role.ROLE_ASSIGNER, "inventory.cordon_node"),
    (Role.APPROVER, "serving.propose_changeplan"),
    (Role.APPROVER, "serving.add_changeplan"),
    (Role.ROUTER_ENGINEER, "inventory.cordon_node"),
    (Role.ROUTER_ENGINEER, "finance.view_ledger"),
    (Role.TENANT_ADMIN, "tenancy.add_tenant"),
    (Role.TENANT_ADMIN, "tenancy.suspend_tenant"),
    (Role.TENANT_ADMIN, "tenancy.change_organisation"),
    (Role.TENANT_ADMIN, "inventory.view_node"),
    (Role.TENANT_ADMIN, "finance.view_ledger"),
    (Role.TENANT_VIEWER, "tenancy.view_inferencekey"),
    (Role.FINANCE, "inventory.cordon_node"),
    (Role.FINANCE, "serving.assign_role"),
    (Role.AUDITOR, "inventory.cordon_node"),
    (Role.AUDITOR, "finance.close_period"),
    (Role.READONLY, "audit.view_auditentry"),
    (Role.READONLY, "finance.view_ledger"),
    (Role.READONLY, "tenancy.view_tenant"),
    ("no-such-role", "inventory.view_node"),
]


@pytest.mark.parametrize(("role", "action"), MAY)
def test_a_role_may(role: str, action: str) -> None:
    assert role_allows(role, action)


@pytest.mark.parametrize(("role", "action"), MAY_NOT)
def test_a_role_may_not(role: str, action: str) -> None:
    assert not role_allows(role, action)


@pytest.mark.parametrize(
    ("scopes", "action", "allowed"),
    [
        (None, "tenancy.add_project", True),
        ([], "tenancy.view_project", False),
        (["tenancy:read"], "tenancy.view_project", True),
        (["tenancy:read"], "tenancy.add_project", False),
        (["tenancy:write"], "tenancy.add_project", True),
        (["tenancy:write"], "tenancy.view_project", True),
        (["inventory:write"], "tenancy.view_project", False),
    ],
)
def test_scopes_only_take_away(scopes: list[str] | None, action: str, allowed: object) -> None:
    assert scopes_allow(scopes, action) is allowed


@pytest.mark.django_db
def test_a_denial_names_the_action_and_the_roles_that_have_it() -> None:
    with pytest.raises(permissions.NotPermittedError) as denied:
        permissions.require(make_user(), "serving.approve_changeplan")

    assert str(denied.value) == "You need the permission serving.approve_changeplan."
    assert denied.value.advice == "Roles that have it: approver."


@pytest.mark.django_db
def test_people_of_a_tenant_act_inside_it_only() -> None:
    ana, ben = make_ana(), make_ben()
    project = make_project(tenant=ana.tenant)

    assert permissions.allows(ana, "tenancy.change_project", project)
    assert not permissions.allows(ben, "tenancy.change_project", project)
    assert permissions.allows(make_admin(), "tenancy.change_project", project)


@pytest.mark.django_db
def test_rows_of_the_platform_are_not_seen_from_a_tenant() -> None:
    ana = make_ana()
    make_admin()

    assert list(permissions.restrict(User.objects.all(), ana, "tenancy.view_user")) == [ana]


@pytest.mark.django_db
def test_who_left_may_nothing() -> None:
    admin = make_admin(is_active=False)

    assert not permissions.allows(admin, "tenancy.view_tenant")
    assert not permissions.restrict(Tenant.objects.all(), admin, "tenancy.view_tenant").exists()
