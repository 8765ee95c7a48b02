"""Issue and revoke what machines prove themselves with. A secret is returned once, never stored."""

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypedDict, Unpack
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.operations import outbox
from controlplane.tenancy import secrets
from controlplane.tenancy.errors import (
    LifetimeNotAllowedError,
    NetworkMalformedError,
    NetworkTooWideError,
    ProjectRetiredError,
    ScopeMissingError,
    ScopeUnknownError,
    TenantNotActiveError,
)
from controlplane.tenancy.models import ApiToken, InferenceKey, Project, Tenant, User
from controlplane.tenancy.permissions import AREAS, scope_held

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LONGEST_DAYS = 365
DEFAULT_TOKEN_DAYS = 90
USE_NOTED_EVERY = timedelta(minutes=1)


class KeyTerms(TypedDict, total=False):
    """What a key is for; left out, it is for every model, for ever, and for no priority above 0."""

    models: Sequence[str]
    expires_in_days: int | None
    highest_priority: int


@transaction.atomic
def issue_inference_key(
    *,
    project_id: UUID,
    name: str,
    actor: User | None,
    reason: str = "",
    **terms: Unpack[KeyTerms],
) -> tuple[InferenceKey, str]:
    """Key and secret for clients of a project; empty `models` is every model.

    Bands of priorities are strict, so one above 0 is the platform's to give. Raises
    NotPermittedError, TenantNotActiveError, ProjectRetiredError or LifetimeNotAllowedError.
    """
    expires_in_days = terms.get("expires_in_days")
    highest_priority = terms.get("highest_priority", 0)
    _check_lifetime(expires_in_days)
    project = (
        Project.objects.select_related("tenant")
        .select_for_update(no_key=True, of=("self",))
        .get(pk=project_id)
    )
    if actor is not None:
        permissions.require(actor, "tenancy.issue_key", project)
        if highest_priority > 0:
            permissions.require(actor, "tenancy.prioritise_key", project)
    tenant = project.tenant
    if tenant.state != Tenant.State.ACTIVE:
        raise TenantNotActiveError(tenant=tenant.slug, state=Tenant.State(tenant.state))
    if project.retired_at is not None:
        raise ProjectRetiredError(project=project.slug)
    prefix, secret = secrets.issue(secrets.INFERENCE_KEY)
    key = InferenceKey.objects.create(
        tenant=tenant, project=project, name=name, prefix=prefix, created_by=actor,
        sha256=secrets.plain_sha256(secret), models=list(terms.get("models", ())),
        expires_at=None if expires_in_days is None else _in_days(expires_in_days),
        highest_priority=highest_priority,
    )  # fmt: skip
    audit.record(
        actor=actor, action="inference_key.issue", subject=key, reason=reason,
        after={
            "models": key.models, "expires_at": key.expires_at,
            "highest_priority": highest_priority,
        },
    )  # fmt: skip
    outbox.emit("consort.key.created", subject=key, data={"prefix": prefix})
    return key, secret


@transaction.atomic
def revoke_inference_key(*, key_id: UUID, actor: User | None, reason: str = "") -> InferenceKey:
    """Stop a key; a second call changes nothing."""
    key = InferenceKey.objects.select_for_update(no_key=True, of=("self",)).get(pk=key_id)
    if actor is not None:
        permissions.require(actor, "tenancy.revoke_key", key)
    if key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at", "updated_at"])
        audit.record(actor=actor, action="inference_key.revoke", subject=key, reason=reason)
        outbox.emit("consort.key.revoked", subject=key, data={"prefix": key.prefix})
    return key


@transaction.atomic
def issue_api_token(  # noqa: PLR0913 - keywords only, each a property of the token
    *,
    owner: User,
    name: str,
    scopes: Sequence[str],
    actor: User | None = None,
    expires_in_days: int = DEFAULT_TOKEN_DAYS,
    allowed_networks: Sequence[str] = (),
    reason: str = "",
) -> tuple[ApiToken, str]:
    """Token and secret; everybody may issue tokens of their own, since a token adds no right.

    A token that issues another gives away scopes and networks of its own only. Raises
    NotPermittedError, ScopeMissingError, ScopeUnknownError, NetworkTooWideError,
    NetworkMalformedError or LifetimeNotAllowedError.
    """
    _check_lifetime(expires_in_days)
    _check_scopes(scopes)
    networks = [_network(text) for text in allowed_networks]
    if actor is not None and (actor.pk != owner.pk or actor.token_scopes is not None):
        permissions.require(actor, "tenancy.add_apitoken", owner)
        _check_inside_token(actor, scopes, networks)
    prefix, secret = secrets.issue(secrets.API_TOKEN)
    version = max(settings.TOKEN_PEPPERS)
    token = ApiToken.objects.create(
        owner=owner, tenant_id=owner.tenant_id, name=name, prefix=prefix,
        digest=secrets.peppered(secret, version=version), pepper_version=version,
        scopes=sorted(set(scopes)), allowed_networks=networks,
        expires_at=_in_days(expires_in_days),
    )  # fmt: skip
    audit.record(
        actor=actor, action="api_token.issue", subject=token, reason=reason,
        after={"scopes": scopes, "allowed_networks": networks, "expires_at": token.expires_at},
    )  # fmt: skip
    return token, secret


@transaction.atomic
def revoke_api_token(*, token_id: UUID, actor: User | None, reason: str = "") -> ApiToken:
    """Stop a token; a second call changes nothing. Raises NotPermittedError, ScopeMissingError."""
    token = ApiToken.objects.select_for_update(no_key=True, of=("self",)).get(pk=token_id)
    if actor is not None and actor.pk != token.owner_id:
        permissions.require(actor, "tenancy.revoke_apitoken", token)
    if actor is not None and not scope_held(actor.token_scopes, "tenancy:write"):
        raise ScopeMissingError(scope="tenancy:write")
    if token.revoked_at is None:
        token.revoked_at = timezone.now()
        token.save(update_fields=["revoked_at", "updated_at"])
        audit.record(actor=actor, action="api_token.revoke", subject=token, reason=reason)
    return token


def note_token_use(*, token_id: UUID, address: str) -> None:
    """Remember when and from where a token was used last, at most once a minute."""
    now = timezone.now()
    ApiToken.objects.filter(
        Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - USE_NOTED_EVERY), pk=token_id
    ).update(last_used_at=now, last_used_address=address or None)


def _check_lifetime(days: int | None) -> None:
    if days is not None and not 1 <= days <= LONGEST_DAYS:
        raise LifetimeNotAllowedError(days=days, longest=LONGEST_DAYS)


def _check_scopes(scopes: Sequence[str]) -> None:
    for scope in scopes:
        area, _colon, kind = scope.partition(":")
        if area not in AREAS or kind not in {"read", "write"}:
            raise ScopeUnknownError(scope=scope, areas=", ".join(AREAS))


def _check_inside_token(actor: User, scopes: Sequence[str], networks: Sequence[str]) -> None:
    """Raise unless what a token issues stays inside of the token; a session has no such limit."""
    for scope in scopes:
        if not scope_held(actor.token_scopes, scope):
            raise ScopeMissingError(scope=scope)
    own = [ipaddress.ip_network(text) for text in actor.token_networks]
    wanted = [ipaddress.ip_network(text) for text in networks or ("0.0.0.0/0", "::/0")]
    if own and not all(any(_is_inside(each, limit) for limit in own) for each in wanted):
        raise NetworkTooWideError(allowed=", ".join(actor.token_networks))


def _is_inside(network: _Network, limit: _Network) -> bool:
    return network.version == limit.version and network.subnet_of(limit)  # type: ignore[arg-type]  # same version


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise NetworkMalformedError(network=text) from error


def _in_days(days: int) -> datetime:
    return timezone.now() + timedelta(days=days)
