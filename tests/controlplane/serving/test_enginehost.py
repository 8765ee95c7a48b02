"""The engine host as its callers meet it: a process, an address, engines that outlive it."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from controlplane.serving.enginehost import process, records
from tests.controlplane.serving.processes import HOST, EngineHost, until

pytestmark = pytest.mark.processes


@pytest.fixture
def host(tmp_path: Path) -> Iterator[EngineHost]:
    host = EngineHost(tmp_path)
    yield host
    host.close()
    host.end_engines()


def spec(**overrides: Any) -> dict[str, Any]:
    argv = ["python", "-m", "routing.testbed.engine", "--port", "0", "--model", "granite-4.1-8b",
            "--accelerator", "amd-mi325x", "--role", "both"]  # fmt: skip
    return {
        "spec_hash": "ab" * 16, "generation": 1, "fencing_token": 1, "argv": argv, "env": {},
    } | overrides  # fmt: skip


def running(host: EngineHost, name: str, spec_hash: str = "ab" * 16) -> Callable[[], Any]:
    def seen() -> Any:
        seen = host.seen(name)
        return seen if (seen["state"], seen["spec_hash"]) == ("running", spec_hash) else None

    return seen


def test_an_engine_starts_chooses_its_port_and_answers(host: EngineHost) -> None:
    answer = host.client.put("/engines/g1-0", json=spec())

    seen = until(running(host, "g1-0"))
    assert answer.status_code == 202
    assert httpx.get(f"http://127.0.0.1:{seen['port']}/v1/models").status_code == 200
    assert b'"ready"' in host.client.get("/engines/g1-0/logs").content


def test_the_same_spec_again_changes_nothing_and_another_replaces_the_process(
    host: EngineHost,
) -> None:
    host.client.put("/engines/g1-0", json=spec())
    first = until(running(host, "g1-0"))

    host.client.put("/engines/g1-0", json=spec())
    again = until(running(host, "g1-0"))
    host.client.put("/engines/g1-0", json=spec(spec_hash="cd" * 16, generation=2))
    second = until(running(host, "g1-0", "cd" * 16))

    assert again["instance"] == first["instance"]
    assert second["instance"] != first["instance"]
    assert process.start_ticks(first["pid"]) is None
    assert second["exit"] == {"pid": first["pid"], "code": 0, "at": second["exit"]["at"],
                              "wanted": True}  # fmt: skip


def test_an_older_fencing_token_is_refused(host: EngineHost) -> None:
    host.client.put("/engines/g1-0", json=spec(fencing_token=7))

    put = host.client.put("/engines/g1-0", json=spec(fencing_token=6))
    delete = host.client.delete("/engines/g1-0?fencing_token=6")

    assert (put.status_code, put.json()["code"]) == (409, "fenced")
    assert "6 is older than 7" in put.json()["detail"]
    assert delete.status_code == 409


def test_a_killed_host_leaves_its_engines_and_the_next_host_adopts_them(host: EngineHost) -> None:
    host.client.put("/engines/g1-0", json=spec())
    before = until(running(host, "g1-0"))

    host.kill()
    assert process.start_ticks(before["pid"]) is not None
    host.start()
    after = until(running(host, "g1-0"))

    assert (after["pid"], after["instance"]) == (before["pid"], before["instance"])
    host.client.delete("/engines/g1-0?fencing_token=1")
    until(lambda: host.seen("g1-0")["state"] == "absent")
    assert process.start_ticks(before["pid"]) is None


def test_a_second_host_on_the_same_folder_is_refused(host: EngineHost) -> None:
    words = [*HOST, "--port", "0", "--state-dir", str(host.folder)]
    second = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)

    assert (second.returncode, "Another engine host uses" in second.stderr) == (2, True)


def test_a_record_that_cannot_be_read_is_put_aside(tmp_path: Path) -> None:
    record = records.EngineRecord(name="g1-0")
    records.write_record(tmp_path, record)
    (tmp_path / "g1-1.json").write_text("{}}")

    read = records.read_records(tmp_path)

    assert [each.name for each in read] == ["g1-0"]
    assert (tmp_path / "g1-1.unreadable").read_text() == "{}}"


def test_an_engine_that_dies_is_reported_and_the_same_spec_starts_it_again(
    host: EngineHost,
) -> None:
    host.client.put("/engines/g1-0", json=spec())
    first = until(running(host, "g1-0"))

    os.kill(first["pid"], signal.SIGKILL)
    dead = until(lambda: host.seen("g1-0")["state"] == "exited" and host.seen("g1-0"))
    host.client.put("/engines/g1-0", json=spec())
    second = until(running(host, "g1-0"))

    assert (dead["exit"]["code"], dead["exit"]["wanted"]) == (-9, False)
    assert second["instance"] != first["instance"]
    assert second["starts"] == 2


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (spec(argv=["rm", "-rf", "x"]), "Program 'rm -rf x' is not allowed"),
        (spec(argv=[]), "is not allowed"),
        (spec(env={"LD_PRELOAD": "x"}), "Variable 'LD_PRELOAD' is not allowed"),
        (spec(generation=-1), "generation is a whole number from 0."),
        (spec(spec_hash="x"), "spec_hash is 16 to 64 hexadecimal digits."),
        (spec(color="red"), "Unknown field 'color'; allowed: argv"),
        ([], "The body is a JSON object."),
    ],
)
def test_a_spec_that_is_not_allowed_is_refused_with_the_reason(
    host: EngineHost, body: Any, sentence: str
) -> None:
    answer = host.client.put("/engines/g1-0", json=body)

    assert answer.status_code == 422
    assert sentence in answer.json()["detail"]
    assert host.client.get("/engines").json() == {"engines": []}


def test_nothing_is_answered_without_the_token(host: EngineHost) -> None:
    answer = host.client.get("/engines", headers={"Authorization": "Bearer wrong"})

    assert (answer.status_code, answer.json()["code"]) == (401, "token-wrong")


def test_a_process_that_ignores_sigterm_is_killed_with_its_group(tmp_path: Path) -> None:
    words = "import signal,time; signal.signal(15, signal.SIG_IGN); print('up'); time.sleep(60)"
    log = tmp_path / "log"
    child = process.start(
        ("python", "-u", "-c", words), env={}, nonce="abc", log=log, folder=tmp_path
    )
    until(lambda: b"up" in log.read_bytes())
    found = process.find_marked("abc")
    assert found is not None

    process.end(found, grace_seconds=0.2)

    assert not process.is_alive(found)
    assert child.wait(5) == -9
