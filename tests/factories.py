"""Rows with valid defaults. Olga operates the fleet, Ana owns project A, Ben project B."""

import itertools
from typing import Any

from rest_framework.test import APIClient

from controlplane.tenancy import services
from controlplane.tenancy.models import (
    ApiToken,
    InferenceKey,
    Organisation,
    Project,
    Role,
    Tenant,
    User,
)
from controlplane.tenancy.permissions import AREAS

_numbers = itertools.count(1)
PASSWORD = "correct horse battery staple"
ALL_SCOPES = tuple(f"{area}:write" for area in AREAS)


def make_organisation(**overrides: Any) -> Organisation:
    number = next(_numbers)
    return Organisation.objects.create(
        **{"slug": f"organisation-{number}", "name": f"Organisation {number}"} | overrides
    )


def make_tenant(**overrides: Any) -> Tenant:
    number = next(_numbers)
    organisation = overrides.pop("organisation", None) or make_organisation()
    defaults = {"slug": f"tenant-{number}", "name": f"Tenant {number}"}
    return Tenant.objects.create(**{"organisation": organisation} | defaults | overrides)


def make_project(**overrides: Any) -> Project:
    number = next(_numbers)
    tenant = overrides.pop("tenant", None) or make_tenant()
    defaults = {"slug": f"project-{number}", "name": f"Project {number}"}
    return Project.objects.create(**{"tenant": tenant} | defaults | overrides)


def make_user(username: str | None = None, *roles: str, **overrides: Any) -> User:
    """A person with roles; may log in with PASSWORD."""
    name = username or f"user-{next(_numbers)}"
    user = User(**{"username": name, "roles": list(roles)} | overrides)
    user.set_password(PASSWORD)
    user.save()
    return user


def make_olga(**overrides: Any) -> User:
    """Operates the fleet: everything but approving and money."""
    roles = (Role.FLEET_OPERATOR, Role.ROLE_ASSIGNER, Role.ROUTER_ENGINEER, Role.READONLY)
    return make_user(f"olga-{next(_numbers)}", *roles, **overrides)


def make_admin(**overrides: Any) -> User:
    return make_user(f"admin-{next(_numbers)}", Role.PLATFORM_ADMIN, **overrides)


def make_ana(**overrides: Any) -> User:
    """Administers a tenant of her own, A."""
    tenant = overrides.pop("tenant", None) or make_tenant()
    return make_user(f"ana-{next(_numbers)}", Role.TENANT_ADMIN, tenant=tenant, **overrides)


def make_ben(**overrides: Any) -> User:
    """Administers a tenant of his own, B; must see nothing of Ana's."""
    tenant = overrides.pop("tenant", None) or make_tenant()
    return make_user(f"ben-{next(_numbers)}", Role.TENANT_ADMIN, tenant=tenant, **overrides)


def make_inference_key(**overrides: Any) -> tuple[InferenceKey, str]:
    project = overrides.pop("project", None) or make_project()
    return services.issue_inference_key(
        **{"project_id": project.pk, "name": "prod", "actor": None} | overrides
    )


def make_api_token(**overrides: Any) -> tuple[ApiToken, str]:
    owner = overrides.pop("owner", None) or make_admin()
    return services.issue_api_token(
        **{"owner": owner, "name": "script", "scopes": ALL_SCOPES} | overrides
    )


def make_api_client(user: User | None = None, **token: Any) -> APIClient:
    """Client of the REST API that acts for the user with a real token; None is anonymous."""
    client = APIClient()
    if user is not None:
        _token, secret = make_api_token(owner=user, **token)
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client
