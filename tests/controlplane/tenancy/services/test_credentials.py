"""Issue and revoke."""

import functools
from typing import Any

import pytest

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.operations.models import OutboxEvent
from controlplane.tenancy import selectors, services
from controlplane.tenancy.errors import (
    LifetimeNotAllowedError,
    NetworkMalformedError,
    NetworkTooWideError,
    ProjectRetiredError,
    ScopeMissingError,
    ScopeUnknownError,
    TenantNotActiveError,
)
from controlplane.tenancy.models import ApiToken, InferenceKey, Role
from tests.factories import (
    make_admin,
    make_ana,
    make_api_token,
    make_ben,
    make_inference_key,
    make_project,
    make_tenant,
    make_user,
)

pytestmark = pytest.mark.django_db


def test_a_key_is_stored_as_a_hash_and_shown_once() -> None:
    ana = make_ana()
    project = make_project(tenant=ana.tenant)

    key, secret = services.issue_inference_key(project_id=project.pk, name="prod", actor=ana)

    assert secret.startswith(key.prefix)
    stored = str(InferenceKey.objects.values().get())
    told = str(list(AuditEntry.objects.values())) + str(list(OutboxEvent.objects.values()))
    assert secret not in stored + told
    assert (key.tenant, key.project) == (ana.tenant, project)


def test_a_priority_above_zero_is_the_platforms_to_give() -> None:
    ana = make_ana()
    wish = {"project_id": make_project(tenant=ana.tenant).pk, "name": "prod"}

    lower, _ = services.issue_inference_key(**wish, actor=ana, highest_priority=-5)
    with pytest.raises(NotPermittedError):
        services.issue_inference_key(**wish, actor=ana, highest_priority=1)
    higher, _ = services.issue_inference_key(**wish, actor=make_admin(), highest_priority=10)

    assert [lower.highest_priority, higher.highest_priority] == [-5, 10]
    entry = AuditEntry.objects.filter(action="inference_key.issue").latest("pk")
    assert entry.after["highest_priority"] == 10


def test_nobody_issues_keys_for_another_tenant() -> None:
    project = make_project(tenant=make_ana().tenant)

    with pytest.raises(NotPermittedError):
        services.issue_inference_key(project_id=project.pk, name="x", actor=make_ben())

    assert not InferenceKey.objects.exists()


@pytest.mark.parametrize("state", ["suspended", "provisioning"])
def test_a_tenant_that_is_not_active_gets_no_keys(state: str) -> None:
    project = make_project(tenant=make_tenant(state=state))

    with pytest.raises(TenantNotActiveError, match=state):
        make_inference_key(project=project)


def test_a_retired_project_gets_no_keys() -> None:
    project = make_project(tenant=make_tenant(slug="a"))
    services.retire_project(project_id=project.pk, actor=make_admin(), reason="over")

    with pytest.raises(ProjectRetiredError):
        make_inference_key(project=project)


@pytest.mark.parametrize("days", [0, -1, 366])
def test_a_lifetime_has_bounds(days: int) -> None:
    with pytest.raises(LifetimeNotAllowedError, match=f"{days} days"):
        make_inference_key(expires_in_days=days)


def test_revoking_twice_is_one_revocation() -> None:
    key, _secret = make_inference_key()
    admin = make_admin()

    first = services.revoke_inference_key(key_id=key.pk, actor=admin, reason="leaked")
    second = services.revoke_inference_key(key_id=key.pk, actor=admin, reason="again")

    assert first.revoked_at == second.revoked_at
    assert AuditEntry.objects.get(action="inference_key.revoke").reason == "leaked"


def test_ben_does_not_revoke_anas_key() -> None:
    key, _secret = make_inference_key(project=make_project(tenant=make_ana().tenant))

    with pytest.raises(NotPermittedError):
        services.revoke_inference_key(key_id=key.pk, actor=make_ben())


def test_everybody_may_issue_tokens_of_their_own() -> None:
    reader = make_user(None, Role.READONLY)

    token, secret = make_api_token(owner=reader, actor=reader, scopes=["inventory:read"])

    assert (token.owner, token.scopes) == (reader, ["inventory:read"])
    assert secret not in str(ApiToken.objects.values().get())


def test_a_token_does_not_beget_tokens_without_the_right_to() -> None:
    reader = make_user(None, Role.READONLY)
    reader.token_scopes = frozenset({"inventory:write"})

    with pytest.raises(NotPermittedError):
        make_api_token(owner=reader, actor=reader, scopes=["inventory:read"])


@pytest.mark.parametrize("scope", ["inventory:read", "finance:write"])
def test_a_token_does_not_beget_tokens_with_more_scopes(scope: str) -> None:
    admin = make_admin()
    admin.token_scopes = frozenset({"tenancy:write", "finance:read"})

    with pytest.raises(ScopeMissingError, match=scope):
        make_api_token(owner=admin, actor=admin, scopes=["tenancy:read", scope])

    token, _secret = make_api_token(owner=admin, actor=admin, scopes=["tenancy:read"])
    assert token.scopes == ["tenancy:read"]


@pytest.mark.parametrize("networks", [[], ["203.0.112.0/23"], ["203.0.113.0/25", "2001:db8::/32"]])
def test_a_token_does_not_beget_tokens_that_work_from_more_networks(networks: list[str]) -> None:
    admin = make_admin()
    admin.token_scopes = frozenset({"tenancy:write"})
    admin.token_networks = ("203.0.113.0/24",)
    issue = functools.partial(make_api_token, owner=admin, actor=admin, scopes=["tenancy:read"])

    with pytest.raises(NetworkTooWideError, match=r"203\.0\.113\.0/24"):
        issue(allowed_networks=networks)

    assert issue(allowed_networks=["203.0.113.128/25"])[0].allowed_networks == ["203.0.113.128/25"]


def test_a_token_without_the_scope_neither_sees_nor_revokes_tokens() -> None:
    owner = make_admin()
    token, _secret = make_api_token(owner=owner)
    owner.token_scopes = frozenset({"inventory:write"})

    with pytest.raises(ScopeMissingError):
        services.revoke_api_token(token_id=token.pk, actor=owner)

    token.refresh_from_db()
    assert token.revoked_at is None
    assert not selectors.api_tokens_for_viewer(owner).exists()


@pytest.mark.parametrize("scope", ["inventory", "inventory:admin", "moon:read", ""])
def test_a_scope_that_does_not_exist_is_named(scope: str) -> None:
    with pytest.raises(ScopeUnknownError, match=f"'{scope}'"):
        make_api_token(scopes=[scope])


@pytest.mark.parametrize("network", ["203.0.113.7/24", "everywhere", ""])
def test_a_network_that_is_none_is_named(network: str) -> None:
    with pytest.raises(NetworkMalformedError, match=f"'{network}'"):
        make_api_token(allowed_networks=[network])


@pytest.mark.parametrize(
    ("networks", "address", "allowed"),
    [
        ([], "198.51.100.1", True),
        ([], "", True),
        (["203.0.113.0/24", "2001:db8::/32"], "203.0.113.9", True),
        (["203.0.113.0/24", "2001:db8::/32"], "2001:db8::9", True),
        (["203.0.113.0/24"], "198.51.100.1", False),
        (["203.0.113.0/24"], "", False),
    ],
)
def test_networks_limit_where_a_token_works(networks: Any, address: str, allowed: Any) -> None:
    token, _secret = make_api_token(allowed_networks=networks)

    assert token.allows_address(address) is allowed
