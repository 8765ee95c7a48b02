"""Rules of tenancy that can say no."""

from http import HTTPStatus

from django.utils.translation import gettext_lazy as _

from controlplane.common.errors import DomainError


class DuplicateError(DomainError):
    code = "duplicate"
    title = _("This name is taken")
    message = _("There is a {kind} with the slug '{slug}' already.")
    hint = _("Choose another slug, or use the one that exists.")


class TenantNotActiveError(DomainError):
    code = "tenant-not-active"
    title = _("Tenant is not active")
    message = _("Tenant {tenant} is {state.label}, so this cannot be done.")
    hint = _("Only an active tenant can have more keys and projects.")


class ProjectRetiredError(DomainError):
    code = "project-retired"
    title = _("Project is retired")
    message = _("Project {project} is retired, so it cannot have more keys.")
    hint = _("Use a project that is not retired.")


class ScopeUnknownError(DomainError):
    code = "scope-unknown"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Unknown scope")
    message = _("'{scope}' is not a scope of a token.")
    hint = _("A scope is <area>:read or <area>:write; areas: {areas}.")


class ScopeMissingError(DomainError):
    """Tokens act inside their scopes, and so does what they issue."""

    code = "scope-missing"
    status = HTTPStatus.FORBIDDEN
    title = _("The token's scopes are not enough")
    message = _("The token that asks has not the scope {scope}.")
    hint = _("Use a token with this scope, or sign in.")


class NetworkTooWideError(DomainError):
    code = "network-too-wide"
    status = HTTPStatus.FORBIDDEN
    title = _("The token's networks are not enough")
    message = _("The token that asks works from {allowed} only, and so must what it issues.")
    hint = _("Give networks inside of these, or sign in.")


class NetworkMalformedError(DomainError):
    code = "network-malformed"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Not a network")
    message = _("'{network}' is not a network.")
    hint = _("Write a network as 203.0.113.0/24 or 2001:db8::/32.")


class LifetimeNotAllowedError(DomainError):
    code = "lifetime-not-allowed"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = _("Lifetime is not allowed")
    message = _("A lifetime of {days} days is not allowed.")
    hint = _("Allowed: 1 to {longest} days.")


class TooManyAttemptsError(DomainError):
    code = "login-throttled"
    status = HTTPStatus.TOO_MANY_REQUESTS
    title = _("Too many attempts")
    message = _("Too many failed logins from this address.")
    hint = _("Try again in {retry_after_seconds} seconds.")


class LoginUnavailableError(DomainError):
    code = "login-unavailable"
    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = _("Login is not possible for the moment")
    message = _("The counter of failed logins cannot be reached, so nobody can log in.")
    hint = _("Sessions that exist go on. Operators: start the cache.")
