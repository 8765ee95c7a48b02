"""Flags go before the environment, the environment before the file."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli import settings
from controlplane.cli.errors import CliError


def flags(**given: Any) -> argparse.Namespace:
    values = {"url": None, "token": None, "ca_file": None, "profile": None, "debug": False}
    return argparse.Namespace(**(values | given))


def write(home: Path, text: str, mode: int = 0o600) -> None:
    path = home / ".config" / "consort" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.chmod(mode)


FILE = """
[profiles.default]
url = "https://file/"
token = "of-file"
[profiles.lab]
url = "https://lab"
token = "of-lab"
"""


def test_flags_go_first_then_the_environment_then_the_file(tmp_path: Path) -> None:
    write(tmp_path, FILE)
    environment = {"CONSORT_TOKEN": "of-environment"}

    found = settings.read(flags(url="https://flag"), environment, home=tmp_path)
    plain = settings.read(flags(), {}, home=tmp_path)
    lab = settings.read(flags(profile="lab"), {}, home=tmp_path)

    assert (found.url, found.token) == ("https://flag", "of-environment")
    assert (plain.url, plain.token) == ("https://file", "of-file")
    assert lab.token == "of-lab"
    assert "of-lab" not in repr(lab)


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    write(tmp_path, FILE, mode=0o644)

    with pytest.raises(CliError, match="readable by others"):
        settings.read(flags(), {}, home=tmp_path)


@pytest.mark.parametrize(
    ("text", "profile", "words"),
    [("x =", None, "is not TOML"), (FILE, "prod", "Known: default, lab"),
     ("", None, "There is no url")],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said(
    tmp_path: Path, text: str, profile: str | None, words: str
) -> None:
    write(tmp_path, text)

    with pytest.raises(CliError, match=words):
        settings.read(flags(profile=profile), {}, home=tmp_path)


def test_a_profile_without_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="does not exist"):
        settings.read(flags(profile="lab"), {}, home=tmp_path)
