"""The environment, typed and strict."""

import stat
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from controlplane.config.env import Env

SECRET = "s" * 32


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("1", True), ("YES", True), ("false", False), ("0", False), ("No", False),
     ("", True)],
)  # fmt: skip
def test_a_flag_is_true_or_false(text: str, value: object) -> None:
    assert Env({"X": text}).flag("X", default=True) is value


@pytest.mark.parametrize("text", ["on", "ture", "2", " "])
def test_any_other_flag_stops_the_start_by_name(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^X=.*use 'true' or 'false'"):
        Env({"X": text}).flag("X", default=False)


@pytest.mark.parametrize("text", ["0", "11", "x", "-1", "1.5"])
def test_a_number_has_bounds(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="use a number from 1 to 10"):
        Env({"X": text}).number("X", default=5, low=1, high=10)


def test_items_lose_their_blanks() -> None:
    assert Env({"X": " a, ,b ,"}).items("X", default=()) == ["a", "b"]
    assert Env({}).items("X", default=("c",)) == ["c"]


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n")

    assert Env({"X_FILE": str(file)}).secret("X") == SECRET


def test_an_address_may_stand_in_a_file_because_it_holds_a_password(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://u:secret@db.example/consort\n")
    env = Env({"X_FILE": str(file)})

    assert env.database("X", default="")["PASSWORD"] == "secret"
    file.write_text("rediss://:secret@valkey.example/1\n")
    assert env.broker("X", default="") == "rediss://:secret@valkey.example/1"
    file.write_text("\n")
    assert env.address("X", default="redis://default") == "redis://default"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "nowhere"

    with pytest.raises(ImproperlyConfigured, match=f"^X_FILE='{file}' cannot be read: No such"):
        Env({"X_FILE": str(file)}).secret("X")


@pytest.mark.parametrize("values", [{}, {"X": "short"}])
def test_a_missing_or_short_secret_says_how_to_make_one(values: dict[str, str]) -> None:
    with pytest.raises(ImproperlyConfigured, match="openssl rand -hex 32"):
        Env(values).secret("X")


def test_a_kept_secret_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "var" / "secret"

    first, second = Env({}).kept_secret("X", file), Env({}).kept_secret("X", file)

    assert first == second
    assert len(first) == 64
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_a_given_secret_wins_over_a_kept_one(tmp_path: Path) -> None:
    assert Env({"X": SECRET}).kept_secret("X", tmp_path / "secret") == SECRET
    assert not (tmp_path / "secret").exists()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p%40x@db.example:5433/consort?sslmode=require",
         {"USER": "u", "PASSWORD": "p@x", "HOST": "db.example", "PORT": "5433", "NAME": "consort",
          "OPTIONS": {"sslmode": "require"}}),
        ("postgres://u@/consort?host=/run/pg", {"HOST": "/run/pg", "PORT": "", "OPTIONS": {}}),
    ],
)  # fmt: skip
def test_a_database_url_becomes_settings(url: str, expected: dict[str, Any]) -> None:
    settings = Env({"X": url}).database("X", default="")

    assert settings | expected == settings


@pytest.mark.parametrize("url", ["sqlite:///x.db", "mysql://h/x", "nonsense"])
def test_another_database_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="PostgreSQL only"):
        Env({"X": url}).database("X", default="")


@pytest.mark.parametrize("url", ["memory://", "sqs://", "nonsense"])
def test_a_broker_that_keeps_nothing_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="allowed: amqp"):
        Env({"X": url}).broker("X", default="")
