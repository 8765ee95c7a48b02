"""May somebody do something? The answer comes from the backend named in settings.

Lower apps ask here, and `tenancy` answers, so that imports still point downwards.
"""

from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from django.conf import settings
from django.db.models import Model, QuerySet
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _

from controlplane.common import denials, labels
from controlplane.common.errors import DomainError

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

M = TypeVar("M", bound=Model)


class PermissionsBackend(Protocol):
    """What `common` needs to know of whoever decides."""

    def allows(self, actor: "User", action: str, subject: Model | None) -> bool:
        """True if the actor may do the action (`app.verb_noun`) to the subject."""

    def roles_with(self, action: str) -> list[str]:
        """Names of roles that have the action, for the sentence that explains a denial."""

    def visible(self, queryset: QuerySet[Any], user: "User", action: str) -> QuerySet[Any]:
        """Rows of the queryset on which the user may do the action."""


class NotPermittedError(DomainError):
    """The actor may see the object, but not do this."""

    code = "not-permitted"
    status = HTTPStatus.FORBIDDEN
    title = _("Not permitted")
    message = _("You need the permission {action}.")
    hint = _("Roles that have it: {roles}.")


def require(actor: "User", action: str, subject: Model | None = None) -> None:
    """Raise NotPermittedError unless the actor may do the action."""
    if not _backend().allows(actor, action, subject):
        denials.note(denials.Denial(actor=actor, action=action, subject=subject))
        roles = _backend().roles_with(action)
        raise NotPermittedError(
            action=action, roles=", ".join(roles), ask=roles,
            needs={"action": action, "object_type": labels.type_label(subject) or None},
        )  # fmt: skip


def allows(actor: "User", action: str, subject: Model | None = None) -> bool:
    """True if the actor may do the action; for showing or disabling a button."""
    return _backend().allows(actor, action, subject)


def roles_with(action: str) -> list[str]:
    """Names of roles that have the action; for the sentence that stands instead of a button."""
    return _backend().roles_with(action)


def restrict(queryset: "QuerySet[M]", user: "User", action: str) -> "QuerySet[M]":
    """Rows of the queryset on which the user may do the action; empty if none."""
    return _backend().visible(queryset, user, action)


@cache
def _backend() -> PermissionsBackend:
    backend: PermissionsBackend = import_string(settings.PERMISSIONS_BACKEND)()
    return backend
