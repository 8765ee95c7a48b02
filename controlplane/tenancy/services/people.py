"""People: accounts, logins, preferences."""

from collections.abc import Sequence
from uuid import UUID

from django.contrib.auth.password_validation import validate_password
from django.db import transaction

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.tenancy import throttle
from controlplane.tenancy.models import Tenant, User


@transaction.atomic
def create_user(
    *,
    username: str,
    password: str | None,
    roles: Sequence[str],
    actor: User | None = None,
    tenant: Tenant | None = None,
    **profile: str,
) -> User:
    """A person who can log in; without a password only tokens work.

    `profile` may hold full_name, language, time_zone and theme. Raises ValidationError that names
    the field, or NotPermittedError.
    """
    if actor is not None:
        action = "tenancy.add_platformuser" if tenant is None else "tenancy.add_user"
        permissions.require(actor, action, tenant)
    user = User(username=username, roles=list(roles), tenant=tenant, **profile)
    if password is None:
        user.set_unusable_password()
    else:
        validate_password(password, user)
        user.set_password(password)
    user.full_clean()
    user.save()
    audit.record(actor=actor, action="user.create", subject=user, after={"roles": list(roles)})
    return user


@transaction.atomic
def set_preferences(
    *, user_id: UUID, language: str | None = None, time_zone: str | None = None,
    theme: str | None = None,
) -> User:  # fmt: skip
    """Change what a person chose for themselves; None leaves a choice as it is.

    Raises ValidationError that names the field.
    """
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    chosen = {"language": language, "time_zone": time_zone, "theme": theme}
    changes = {name: value for name, value in chosen.items() if value is not None}
    for name, value in changes.items():
        setattr(user, name, value)
    user.clean_fields()
    user.save(update_fields=[*changes, "updated_at"])
    return user


def check_login(*, address: str) -> None:
    """Raise TooManyAttemptsError after ten failures from an address within a minute.

    Without the cache nobody can log in: LoginUnavailableError, since a guess must be counted.
    """
    throttle.check(address)


def note_failed_login(*, username: str, address: str) -> None:
    """Count a failed login, and record it if the account exists."""
    throttle.count(address)
    user = User.objects.filter(username=username).first()
    if user is not None:
        audit.record(actor=None, action="user.login", subject=user, result="denied")


def note_login(*, user: User) -> None:
    """Record a login."""
    audit.record(actor=user, action="user.login", subject=user)


def note_logout(*, user: User) -> None:
    """Record a logout."""
    audit.record(actor=user, action="user.logout", subject=user)
