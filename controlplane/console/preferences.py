"""Language and colours of a person: kept in the user, or in the session before signing in."""

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from controlplane.tenancy import services as tenancy
from controlplane.tenancy.models import Theme, User

THEME_WORDS = {
    Theme.SYSTEM: _("Theme: as the system"),
    Theme.LIGHT: _("Theme: light"),
    Theme.DARK: _("Theme: dark"),
}
_ORDER = [Theme.SYSTEM, Theme.LIGHT, Theme.DARK]


def theme_of(request: HttpRequest) -> str:
    """system, light or dark."""
    user = getattr(request, "user", None)
    if isinstance(user, User):
        return user.theme
    session = getattr(request, "session", None)
    return session.get("theme", Theme.SYSTEM) if session is not None else Theme.SYSTEM


def next_theme(theme: str) -> str:
    """The theme that the switch goes to."""
    place = _ORDER.index(Theme(theme)) if theme in _ORDER else 0
    return _ORDER[(place + 1) % len(_ORDER)]


def is_language(code: str) -> bool:
    """True if the console speaks it."""
    return code in dict(settings.LANGUAGES)


def is_theme(code: str) -> bool:
    """True if it is one of the three themes."""
    return code in _ORDER


def theme_word(theme: str) -> object:
    """What the theme switch says."""
    return THEME_WORDS.get(Theme(theme) if theme in _ORDER else Theme.SYSTEM, "")


def keep(request: HttpRequest, *, language: str = "", theme: str = "") -> None:
    """Store choices that exist: in the user, or in the session of who has not signed in."""
    chosen = {
        "language": language if is_language(language) else None,
        "theme": theme if is_theme(theme) else None,
    }
    user = request.user
    if isinstance(user, User):
        tenancy.set_preferences(user_id=user.pk, **chosen)
    elif chosen["theme"]:
        request.session["theme"] = theme
