"""Who may do what: the shipped roles, and the border around a tenant.

An action is `app.verb_noun`, as in "inventory.cordon_node"; reading is "app.view_model". A role is
a list of patterns; one that starts with "!" takes away what the ones before it gave.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from django.db.models import Model, QuerySet

from controlplane.common.tenants import tenant_id_of, tenant_path
from controlplane.tenancy.models import Role, User

_FLEET_VIEW = ("inventory.view_*", "serving.view_*", "telemetry.view_*", "operations.view_*",
               "routing.view_*", "planning.view_*")  # fmt: skip
_TENANT_VIEW = (
    "tenancy.view_organisation", "tenancy.view_tenant", "tenancy.view_project",
    "metering.view_usage", "metering.view_usagehour", "operations.view_operation",
    "routing.view_decision",
)  # fmt: skip

ACTIONS: dict[str, tuple[str, ...]] = {
    Role.PLATFORM_ADMIN: ("*", "!serving.approve_*", "!serving.reject_*"),
    Role.FLEET_OPERATOR: ("inventory.*", *_FLEET_VIEW, "operations.*", "serving.drain_*"),
    Role.ROLE_ASSIGNER: (
        *_FLEET_VIEW, "serving.*_changeplan", "serving.assign_role", "serving.rollback*",
        "serving.*_workload", "!serving.approve_*", "!serving.reject_*", "planning.*",
    ),
    Role.APPROVER: (*_FLEET_VIEW, "serving.approve_*", "serving.reject_*"),
    Role.ROUTER_ENGINEER: (
        *_FLEET_VIEW, "serving.*_pool", "serving.*_pooldocument", "serving.*_router",
        "serving.*_routerpush", "serving.*_endpoint", "serving.*_model", "serving.*_modelartefact",
        "routing.*", "planning.*",
    ),
    Role.TENANT_ADMIN: (
        *_TENANT_VIEW, "tenancy.*", "!tenancy.*_organisation", "tenancy.view_organisation",
        "!tenancy.add_tenant", "!tenancy.delete_tenant", "!tenancy.suspend_tenant",
        "!tenancy.resume_tenant", "!tenancy.add_platformuser",
        "!tenancy.prioritise_key",
    ),
    Role.TENANT_VIEWER: _TENANT_VIEW,
    Role.FINANCE: (*_FLEET_VIEW, "finance.*", "metering.*", "tenancy.view_organisation",
                   "tenancy.view_tenant", "tenancy.view_project"),
    Role.AUDITOR: ("*.view_*", "audit.*"),
    Role.READONLY: (*_FLEET_VIEW, "metering.view_reconciliation"),
}  # fmt: skip

AREAS = (
    "audit", "finance", "inventory", "metering", "metrics", "operations", "planning", "routing",
    "serving", "system", "telemetry", "tenancy", "webhooks",
)  # fmt: skip
"""First halves of a token's scopes: `<area>:read` or `<area>:write`."""


@cache
def role_allows(role: str, action: str) -> bool:
    """True if the shipped role has the action; the last pattern that matches decides."""
    allowed = False
    for pattern in ACTIONS.get(role, ()):
        if fnmatchcase(action, pattern.removeprefix("!")):
            allowed = not pattern.startswith("!")
    return allowed


def scopes_allow(scopes: Iterable[str] | None, action: str) -> bool:
    """True if a token with the scopes may try the action; None is no token, so no limit.

    `write` includes `read`.
    """
    if scopes is None:
        return True
    area, _dot, verb_noun = action.partition(".")
    kinds = ("read", "write") if verb_noun.startswith("view_") else ("write",)
    return any(f"{area}:{kind}" in scopes for kind in kinds)


def scope_held(scopes: Iterable[str] | None, scope: str) -> bool:
    """True if whoever has the scopes has this one too; None is no token, so no limit."""
    if scopes is None:
        return True
    return bool({scope, f"{scope.partition(':')[0]}:write"} & set(scopes))


class RolePermissions:
    """The backend of `common.permissions`: roles, then the scopes of a token, then the tenant."""

    def allows(self, actor: User, action: str, subject: Model | None) -> bool:
        """True if a role of the actor has the action and the subject is inside their border."""
        if not _may(actor, action):
            return False
        if actor.tenant_id is None or subject is None:
            return True
        return tenant_id_of(subject) == actor.tenant_id

    def roles_with(self, action: str) -> list[str]:
        """Roles that have the action, in the order of the shipped table."""
        return [role for role in Role.values if role_allows(role, action)]

    def visible(self, queryset: QuerySet[Any], user: User, action: str) -> QuerySet[Any]:
        """All rows for people of the platform, own rows for people of a tenant, else none."""
        if not _may(user, action):
            return queryset.none()
        if user.tenant_id is None:
            return queryset
        path = tenant_path(queryset.model)
        return queryset.filter(**{path: user.tenant_id}) if path else queryset.none()


def _may(actor: User, action: str) -> bool:
    if not isinstance(actor, User) or not actor.is_active:
        return False
    return scopes_allow(actor.token_scopes, action) and any(
        role_allows(role, action) for role in actor.roles
    )
