"""What every page knows."""

from django.conf import settings
from django.http import HttpRequest
from django.utils import translation
from django.utils.functional import SimpleLazyObject

from controlplane.console import format as fmt
from controlplane.console import navigation, preferences, selectors
from controlplane.tenancy.models import User

VERSION = "0.1.0"
"""As in pyproject.toml; the product runs from its folder and is not installed as a package."""


def frame(request: HttpRequest) -> dict[str, object]:
    """Context of the frame around every page; what costs a query is asked only if shown."""
    language = (translation.get_language() or "en")[:2]
    theme = preferences.theme_of(request)
    return {
        "installation": settings.INSTALLATION,
        "simulated": settings.SIMULATED,
        "navigation": SimpleLazyObject(lambda: navigation.links(request)),
        "running_operations": SimpleLazyObject(lambda: _running(request)),
        "theme": theme,
        "theme_word": preferences.theme_word(theme),
        "next_theme": preferences.next_theme(theme),
        "product_version": VERSION,
        "language": language,
        "other_languages": [pair for pair in settings.LANGUAGES if pair[0] != language],
        "time_zone": SimpleLazyObject(fmt.zone),
    }


def _running(request: HttpRequest) -> int:
    user = request.user
    return selectors.running_operations(user) if isinstance(user, User) else 0
