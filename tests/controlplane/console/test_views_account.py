"""Signing in and out, preferences, help and problems."""

from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.test import Client

from controlplane.audit.models import AuditEntry
from controlplane.tenancy.models import User
from tests.factories import PASSWORD, make_olga

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_earlier_failures() -> None:
    cache.clear()


def test_the_right_password_signs_in_and_goes_where_the_person_wanted() -> None:
    olga = make_olga()

    response = Client().post(
        "/login", {"username": olga.username, "password": PASSWORD, "next": "/operations"}
    )

    assert response.status_code == 302
    assert response["Location"] == "/operations"
    assert AuditEntry.objects.filter(action="user.login", actor=olga).exists()


def test_nobody_is_sent_to_another_site() -> None:
    olga = make_olga()

    response = Client().post(
        "/login",
        {"username": olga.username, "password": PASSWORD, "next": "https://example.org/"},
    )

    assert response["Location"] == "/"


def test_a_wrong_password_says_so_and_is_recorded() -> None:
    olga = make_olga()

    response = Client().post("/login", {"username": olga.username, "password": "wrong"})

    assert response.status_code == 422
    assert b"do not match" in response.content
    assert AuditEntry.objects.filter(action="user.login", result="denied").exists()


def test_after_ten_wrong_passwords_the_address_waits_even_with_the_right_one() -> None:
    olga = make_olga()
    client = Client()
    for _try in range(10):
        client.post("/login", {"username": olga.username, "password": "wrong"})

    response = client.post("/login", {"username": olga.username, "password": PASSWORD})

    assert response.status_code == 422
    assert b"Too many failed logins" in response.content
    assert b"Try again in" in response.content


def test_an_empty_form_names_what_is_missing() -> None:
    response = Client().post("/login", {"username": "", "password": ""})

    assert response.status_code == 422
    assert b"Give a user name and a password." in response.content


def test_signing_out_ends_the_session(client_of: Callable[..., Client]) -> None:
    client = client_of(make_olga())

    client.post("/logout")

    assert client.get("/fleet/nodes").status_code == 302


def test_signing_out_needs_a_post(client_of: Callable[..., Client]) -> None:
    assert client_of(make_olga()).get("/logout").status_code == 405


def test_language_and_theme_of_a_person_are_kept_in_the_user(
    client_of: Callable[..., Client],
) -> None:
    olga = make_olga()
    client = client_of(olga)

    client.post("/preferences", {"language": "ko", "next": "/help"})
    client.post("/preferences", {"theme": "dark"})

    olga.refresh_from_db()
    assert (olga.language, olga.theme) == ("ko", "dark")


def test_before_signing_in_they_are_kept_in_cookie_and_session() -> None:
    client = Client()

    client.post("/preferences", {"language": "ko", "next": "/login"})
    client.post("/preferences", {"theme": "dark", "next": "/login"})
    text = client.get("/login").content.decode()

    assert '<html lang="ko" data-theme="dark"' in text


@pytest.mark.parametrize(("name", "value"), [("language", "xx"), ("theme", "pink")])
def test_a_choice_that_does_not_exist_changes_nothing(
    client_of: Callable[..., Client], name: str, value: str
) -> None:
    olga = make_olga()

    client_of(olga).post("/preferences", {name: value})

    olga.refresh_from_db()
    assert (olga.language, olga.theme) == ("en", "system")


def test_the_theme_switch_answers_a_script_with_its_word(
    client_of: Callable[..., Client],
) -> None:
    response = client_of(make_olga()).post(
        "/preferences", {"theme": "dark"}, headers={"Accept": "application/json"}
    )

    assert response.json() == {"theme_word": "Theme: dark"}


def test_the_account_page_keeps_the_time_zone(client_of: Callable[..., Client]) -> None:
    olga = make_olga()
    client = client_of(olga)

    response = client.post(
        "/account", {"language": "en", "theme": "system", "time_zone": "Asia/Seoul"}
    )

    assert response.status_code == 302
    assert User.objects.get(pk=olga.pk).time_zone == "Asia/Seoul"
    assert b"KST (UTC+9)" in client.get("/account").content


def test_a_time_zone_that_does_not_exist_is_refused_at_its_field(
    client_of: Callable[..., Client],
) -> None:
    response = client_of(make_olga()).post(
        "/account", {"language": "en", "theme": "system", "time_zone": "Mars/Base"}
    )

    assert response.status_code == 422
    assert b'id="id_time_zone_error"' in response.content


def test_a_problem_page_says_what_a_code_means() -> None:
    known = Client().get("/problems/plan-own")
    unknown = Client().get("/problems/no-such-code")

    assert known.status_code == 200
    assert b"Needs another person" in known.content
    assert unknown.status_code == 404


def test_help_and_missing_pages_open_without_signing_in() -> None:
    assert Client().get("/help").status_code == 200
    assert Client().get("/no-such-page").status_code == 404
