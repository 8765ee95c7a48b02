"""The language and time zone of the person."""

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.utils import timezone, translation

from controlplane.tenancy.middleware import PreferencesMiddleware
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def _seen(user: object) -> str:
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse(f"{translation.get_language()} {timezone.get_current_timezone_name()}")

    request = RequestFactory().get("/")
    request.user = user
    return PreferencesMiddleware(view)(request).content.decode()


def test_a_request_has_what_the_person_chose() -> None:
    assert _seen(make_user(language="ko", time_zone="Asia/Seoul")) == "ko Asia/Seoul"


def test_the_next_request_has_its_own() -> None:
    _seen(make_user(language="ko", time_zone="Asia/Seoul"))

    assert _seen(make_user()) == "en UTC"
    assert translation.get_language() == "en"


def test_a_language_that_does_not_exist_changes_nothing() -> None:
    assert _seen(make_user(language="xx")) == "en UTC"
