"""`consort route` against the real API: as a person and as a program would use it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from controlplane.cli.main import main
from controlplane.decisions import services
from tests.controlplane.decisions.conftest import LiveRouter, live
from tests.controlplane.decisions.records import Desk, document, store_document
from tests.factories import ALL_SCOPES, make_api_token, make_olga
from tests.routing.servers.scripted import SECRET

__all__ = ["live"]
pytestmark = pytest.mark.usefixtures("clean_cache")
Consort = Callable[..., tuple[int, str]]


@pytest.fixture
def consort(
    live_server: LiveServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Any,
) -> Consort:
    """Run a command as Olga; gives exit code and what it wrote."""
    _token, secret = make_api_token(owner=make_olga(), scopes=list(ALL_SCOPES))
    monkeypatch.setenv("CONSORT_URL", live_server.url)
    monkeypatch.setenv("CONSORT_TOKEN", secret)
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(*arguments: str) -> tuple[int, str]:
        code = main(["route", *arguments])
        told = capsys.readouterr()
        return code, told.out + told.err

    return run


@pytest.fixture
def line(transactional_db: None) -> dict[str, Any]:
    """A stored decision."""
    store_document(document())
    desk = Desk()
    found = desk.decide()
    services.take_in(desk.page(), router="router-a")
    return found


def test_a_decision_is_explained_as_a_sentence_with_its_candidates(
    line: dict[str, Any], consort: Consort
) -> None:
    code, english = consort("explain", line["id"], "-o", "table")
    _, korean = consort("explain", line["id"], "-o", "table", "--lang", "ko")

    assert code == 0
    assert line["destination"] in english.splitlines()[0]
    assert "candidate" in english
    assert "sum s" in english
    assert "선택" in korean or "유지" in korean


def test_programs_get_json_or_yaml(line: dict[str, Any], consort: Consort) -> None:
    _, as_json = consort("explain", line["id"])
    _, as_yaml = consort("explain", line["id"], "-o", "yaml")

    assert json.loads(as_json)["decision_id"] == line["id"]
    assert f"decision_id: {line['id']}" in as_yaml


def test_a_replay_stands_beside_the_record(line: dict[str, Any], consort: Consort) -> None:
    code, told = consort("replay", line["id"], "--remove", line["destination"], "-o", "table")
    forced, other = consort("replay", line["id"], "--force", "gpu-kr-01")

    assert (code, forced) == (0, 0)
    assert "recorded" in told
    assert any(row.startswith("destination") and row.endswith("*") for row in told.splitlines())
    assert json.loads(other)["record"]["destination"] == "gpu-kr-01"


def test_a_request_of_sizes_is_explained_and_one_is_sent(
    transactional_db: None, live: LiveRouter, consort: Consort, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("--pool", "main", "--force", "b", "-o", "table")
    code, told = consort("explain", "--prompt-tokens", "3000", *asked)
    keyless, _ = consort("test", "--pool", "main", "--prompt", "hello")
    monkeypatch.setenv("CONSORT_INFERENCE_KEY", SECRET)
    sent, answer = consort("test", "--pool", "main", "--prompt", "hello", "-o", "table")

    assert code == 0
    assert "b was chosen because the caller asked for it" in told
    assert keyless == 2
    assert sent == 0
    assert answer.startswith("200 from r1")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("explain", "nobody"), 3, "no such object"),
        (("explain",), 2, "--prompt-tokens"),
        (("explain", "--prompt-tokens", "5"), 2, "--pool"),
        (("explain", "--prompt-tokens", "5", "--pool", "no"), 4, "pool"),
        (("explain", "x", "--token", "wrong"), 6, ""),
        (("explain", "x", "--url", "http://127.0.0.1:9"), 8, "did not answer"),
        (("test", "--pool", "main", "--prompt", "@/no/such/file"), 2, ""),
    ],
)
def test_errors_have_their_exit_codes(
    transactional_db: None,
    consort: Consort,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    monkeypatch.setattr("controlplane.cli.client.FIRST_PAUSE", 0.0)
    monkeypatch.setenv("CONSORT_INFERENCE_KEY", "x")

    found, told = consort(*arguments)

    assert found == code, told
    assert words in told.lower()
