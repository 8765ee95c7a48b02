"""The target `local` at its process boundary."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane.serving.targets import target, targets
from controlplane.serving.targets.base import (
    TargetRefusedError,
    TargetUnavailableError,
    WantedEngine,
)
from tests.controlplane.serving.boundary import Boundary

WANTED = WantedEngine(name="gpu-1-0", generation=1, spec_hash="ab" * 16, argv=("vllm", "serve"))
SEEN = {
    "name": "gpu-1-0", "state": "exited", "spec_hash": None, "generation": None,
    "wanted_spec_hash": "ab" * 16, "pid": None,
    "port": None, "instance": None, "starts": 2, "failure": "",
    "exit": {"pid": 7, "code": 137, "at": 1000.0, "wanted": False},
}  # fmt: skip

Script = Callable[[int, Any], None]


@pytest.fixture
def answer(settings: Any) -> Iterator[Script]:
    said: list[tuple[int, bytes]] = []
    server = Boundary(lambda *_: said[-1])
    settings.ENGINE_HOST_URL = server.url
    yield lambda status, body: said.append((status, json.dumps(body).encode()))
    server.close()


def test_an_engine_that_ended_is_seen_with_its_code(answer: Script) -> None:
    answer(200, {"engines": [SEEN]})

    seen = target("local").observe([WANTED])["gpu-1-0"]

    assert (seen.state, seen.exit_code, seen.exited_at, seen.starts) == ("exited", 137, 1000.0, 2)
    assert (seen.url, seen.asked_spec_hash) == (None, "ab" * 16)


def test_an_engine_that_the_host_does_not_know_is_absent(answer: Script) -> None:
    answer(200, {"engines": []})

    assert target("local").observe([WANTED])["gpu-1-0"].state == "absent"


@pytest.mark.parametrize("code", ["fenced", "spec-refused"])
def test_a_refusal_says_whether_a_newer_holder_acts(answer: Script, code: str) -> None:
    answer(409, {"code": code, "detail": "Token 3 is older than 4."})

    with pytest.raises(TargetRefusedError, match="older than 4") as refused:
        target("local").apply(WANTED, fencing_token=3)

    assert refused.value.fenced is (code == "fenced")


def test_a_host_that_fails_or_is_away_is_unavailable(answer: Script, settings: Any) -> None:
    answer(500, {"code": "failed", "detail": "Its log says why."})
    with pytest.raises(TargetUnavailableError, match="Its log says why"):
        target("local").observe([WANTED])

    settings.ENGINE_HOST_URL = "http://127.0.0.1:1"
    with pytest.raises(TargetUnavailableError, match="did not answer"):
        target("local").observe([WANTED])


def test_deleting_what_is_not_known_is_done_already(answer: Script) -> None:
    answer(404, {"code": "engine-unknown", "detail": "No."})

    target("local").delete(WANTED, fencing_token=1)


def test_an_unknown_target_names_the_known_ones() -> None:
    assert sorted(targets()) == ["kubernetes", "local", "static"]
    with pytest.raises(KeyError, match="kubernetes, local, static"):
        target("mainframe")
