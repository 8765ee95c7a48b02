"""Reads of tenancy: who may see which rows, and look-ups of credentials."""

from collections.abc import Iterable

from django.db.models import Q, QuerySet
from django.utils import timezone

from controlplane.common import permissions
from controlplane.tenancy import secrets
from controlplane.tenancy.models import ApiToken, InferenceKey, Organisation, Project, Tenant, User
from controlplane.tenancy.permissions import scope_held


def organisations_for_viewer(viewer: User) -> QuerySet[Organisation]:
    """All for people of the platform; people of a tenant see the one it belongs to."""
    if viewer.tenant_id is None:
        return permissions.restrict(Organisation.objects.all(), viewer, "tenancy.view_organisation")
    if not permissions.allows(viewer, "tenancy.view_organisation"):
        return Organisation.objects.none()
    return Organisation.objects.filter(tenants=viewer.tenant_id)


def tenants_for_viewer(viewer: User) -> QuerySet[Tenant]:
    """Tenants with their organisation."""
    rows = Tenant.objects.select_related("organisation")
    return permissions.restrict(rows, viewer, "tenancy.view_tenant")


def projects_for_viewer(viewer: User) -> QuerySet[Project]:
    """Projects with their tenant."""
    rows = Project.objects.select_related("tenant")
    return permissions.restrict(rows, viewer, "tenancy.view_project")


def inference_keys_for_viewer(viewer: User) -> QuerySet[InferenceKey]:
    """Keys of the data plane, live and not; secrets are not stored anywhere."""
    rows = InferenceKey.objects.select_related("tenant", "project")
    return permissions.restrict(rows, viewer, "tenancy.view_inferencekey")


def api_tokens_for_viewer(viewer: User) -> QuerySet[ApiToken]:
    """Own tokens; with `tenancy.view_apitoken` also those of others inside the border.

    A token without a scope of tenancy sees none, also not itself.
    """
    rows = ApiToken.objects.select_related("owner")
    if not scope_held(viewer.token_scopes, "tenancy:read"):
        return rows.none()
    others = permissions.restrict(rows, viewer, "tenancy.view_apitoken")
    return rows.filter(Q(pk__in=others.values("pk")) | Q(owner=viewer))


def users_for_viewer(viewer: User) -> QuerySet[User]:
    """People, by user name."""
    return permissions.restrict(User.objects.all(), viewer, "tenancy.view_user")


def live_inference_keys(model_names: Iterable[str]) -> list[InferenceKey]:
    """Keys that a router of a pool with these models must know, in a stable order.

    Live is: neither revoked nor expired, tenant active, project not retired. A key without a list
    of models may use every model.
    """
    now = timezone.now()
    return list(
        InferenceKey.objects.select_related("tenant", "project")
        .filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True)
        .filter(Q(models=[]) | Q(models__overlap=list(model_names)))
        .filter(tenant__state=Tenant.State.ACTIVE, project__retired_at__isnull=True)
        .order_by("created_at", "pk")
    )


def api_token_by_secret(secret: str) -> ApiToken | None:
    """Token of a presented secret, with its owner; None if there is none."""
    prefix = secrets.prefix_of(secret, kind=secrets.API_TOKEN)
    if prefix is None:
        return None
    token = ApiToken.objects.select_related("owner").filter(prefix=prefix).first()
    if token is None:
        return None
    matches = secrets.same(token.digest, secrets.peppered(secret, version=token.pepper_version))
    return token if matches else None
