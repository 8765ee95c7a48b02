"""Ben sees nothing of Ana's."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from controlplane.tenancy import selectors, services
from controlplane.tenancy.models import Role, Tenant
from tests.factories import (
    make_admin,
    make_ana,
    make_api_token,
    make_ben,
    make_inference_key,
    make_olga,
    make_project,
    make_tenant,
    make_user,
)

pytestmark = pytest.mark.django_db

SELECTORS = [
    selectors.organisations_for_viewer,
    selectors.tenants_for_viewer,
    selectors.projects_for_viewer,
    selectors.inference_keys_for_viewer,
    selectors.api_tokens_for_viewer,
    selectors.users_for_viewer,
]


@pytest.mark.parametrize("selector", SELECTORS)
def test_ben_sees_his_own_and_nothing_of_anas(selector: Any) -> None:
    ana, ben = make_ana(), make_ben()
    for person in (ana, ben):
        make_inference_key(project=make_project(tenant=person.tenant))
        make_api_token(owner=person)

    of_ana, of_ben = set(selector(ana)), set(selector(ben))

    assert of_ana
    assert of_ben
    assert not of_ana & of_ben


@pytest.mark.parametrize("selector", SELECTORS)
def test_somebody_without_a_role_sees_nothing(selector: Any) -> None:
    ana, nobody = make_ana(), make_user()
    make_inference_key(project=make_project(tenant=ana.tenant))
    make_api_token(owner=ana)

    assert not selector(nobody).exists()


@pytest.mark.parametrize("selector", SELECTORS)
def test_somebody_who_left_sees_nothing_but_their_own_tokens(selector: Any) -> None:
    admin = make_admin(is_active=False)
    make_inference_key()

    assert not selector(admin).exists()


@pytest.mark.parametrize("selector", SELECTORS[:-1])
def test_who_operates_the_fleet_does_not_see_details_of_tenants(selector: Any) -> None:
    make_inference_key()
    make_api_token()

    assert not selector(make_olga()).exists()


def test_a_viewer_of_a_tenant_sees_no_keys() -> None:
    tenant = make_tenant()
    viewer = make_user(None, Role.TENANT_VIEWER, tenant=tenant)
    make_inference_key(project=make_project(tenant=tenant))

    assert list(selectors.tenants_for_viewer(viewer)) == [tenant]
    assert not selectors.inference_keys_for_viewer(viewer).exists()


def test_live_keys_are_those_of_the_models_and_those_of_all() -> None:
    project = make_project()
    for_all, _ = make_inference_key(project=project)
    for_a, _ = make_inference_key(project=project, models=["a", "b"])
    make_inference_key(project=project, models=["c"])

    assert selectors.live_inference_keys(["a"]) == [for_all, for_a]


def test_keys_that_ended_are_not_live() -> None:
    project = make_project()
    revoked, _ = make_inference_key(project=project)
    services.revoke_inference_key(key_id=revoked.pk, actor=None)
    make_inference_key(project=project, expires_in_days=1)
    of_suspended, _ = make_inference_key()
    Tenant.objects.filter(pk=of_suspended.tenant_id).update(state=Tenant.State.SUSPENDED)
    of_retired, _ = make_inference_key()
    type(of_retired.project).objects.filter(pk=of_retired.project_id).update(
        retired_at=timezone.now()
    )

    with time_machine.travel(timezone.now() + timedelta(days=1, seconds=1)):
        assert selectors.live_inference_keys(["a"]) == []


def test_a_secret_finds_its_token_and_nothing_else_does() -> None:
    token, secret = make_api_token()
    _key, key_secret = make_inference_key()

    assert selectors.api_token_by_secret(secret) == token
    for wrong in (secret[:-1], secret + "x", token.prefix, token.digest, key_secret, ""):
        assert selectors.api_token_by_secret(wrong) is None
