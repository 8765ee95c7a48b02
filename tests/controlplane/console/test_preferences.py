"""Themes follow one another and unknown ones fall back to the system's."""

import pytest
from django.test import RequestFactory

from controlplane.console import preferences
from controlplane.tenancy.models import User


@pytest.mark.parametrize(
    ("theme", "after"),
    [("system", "light"), ("light", "dark"), ("dark", "system"), ("pink", "light")],
)
def test_the_switch_goes_round(theme: str, after: str) -> None:
    assert preferences.next_theme(theme) == after


def test_a_request_without_a_session_has_the_systems_theme() -> None:
    assert preferences.theme_of(RequestFactory().get("/")) == "system"


def test_the_users_theme_wins_over_the_sessions() -> None:
    request = RequestFactory().get("/")
    request.user = User(theme="dark")

    assert preferences.theme_of(request) == "dark"
    assert str(preferences.theme_word("dark")) == "Theme: dark"
