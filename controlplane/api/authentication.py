"""Machines prove themselves with `Authorization: Bearer cst_…`; browsers with their session."""

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from controlplane.api.errors import (
    CsrfFailedError,
    TokenExpiredError,
    TokenNetworkError,
    TokenRevokedError,
)
from controlplane.common import origin
from controlplane.tenancy import selectors, services
from controlplane.tenancy.models import ApiToken, User

SCHEME = b"bearer"


class TokenAuthentication(authentication.BaseAuthentication):
    """An API token acts for its owner, inside its scopes, networks and time."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Owner and token; None without a Bearer header, so that the session can answer."""
        scheme, _space, secret = authentication.get_authorization_header(request).partition(b" ")
        if scheme.lower() != SCHEME:
            return None
        token = selectors.api_token_by_secret(secret.strip().decode("latin-1"))
        if token is None or not token.owner.is_active:
            raise exceptions.AuthenticationFailed(_("The token is not known."))
        self._refuse_unusable(token)
        services.note_token_use(token_id=token.pk, address=origin.current().address)
        origin.refine(kind="token", auth_method="api-token")
        user = token.owner
        user.token_scopes = frozenset(token.scopes)
        user.token_networks = tuple(token.allowed_networks)
        return user, token

    def _refuse_unusable(self, token: ApiToken) -> None:
        address = origin.current().address
        if token.revoked_at is not None:
            raise TokenRevokedError(prefix=token.prefix)
        if not token.is_live(now=timezone.now()):
            raise TokenExpiredError(prefix=token.prefix)
        if not token.allows_address(address):
            raise TokenNetworkError(prefix=token.prefix, address=address)

    def authenticate_header(self, request: Request) -> str:
        """For WWW-Authenticate of a 401."""
        return "Bearer"


class SessionAuthentication(authentication.SessionAuthentication):
    """As Django REST framework's, and says so to the audit log."""

    def authenticate(self, request: Request) -> tuple[User, None] | None:
        """The signed-in person, after the CSRF check on writes; None if nobody is signed in."""
        answer: tuple[User, None] | None = super().authenticate(request)
        if answer is not None:
            origin.refine(kind="user", auth_method="session")
        return answer

    def enforce_csrf(self, request: Request) -> None:
        """Raise CsrfFailedError for a write without the token of the session."""
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as error:
            raise CsrfFailedError from error
