"""Speaks the language of the person, in their time zone."""

import zoneinfo
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

from controlplane.common import origin
from controlplane.tenancy.models import User

_LANGUAGES = {code for code, _name in settings.LANGUAGES}


class PreferencesMiddleware:
    """Apply the signed-in person's language and time zone to this request only."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = request.user
        if not isinstance(user, User):
            return self.get_response(request)
        origin.refine(kind="user", auth_method="session")
        language = user.language if user.language in _LANGUAGES else translation.get_language()
        request.LANGUAGE_CODE = language or settings.LANGUAGE_CODE
        with translation.override(language), timezone.override(zoneinfo.ZoneInfo(user.time_zone)):
            return self.get_response(request)
