"""`consort route` on files, without a server and without a token."""

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli.main import main
from tests.routing.explain.records import candidate, record
from tests.routing.llmd.test_exchange import WEIGHTED
from tests.routing.pool.builders import document_dict, endpoint_dict

Written = tuple[int, str, str]


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CONSORT_URL", "CONSORT_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Write a file and run a command on it."""

    def asked(verb: str, content: bytes, *more: str) -> Written:
        (tmp_path / "file").write_bytes(content)
        name = str(tmp_path / "file")
        code = main(["route", verb, f"@{name}" if verb == "explain" else name, *more])
        told = capsys.readouterr()
        return code, told.out, told.err

    return asked


def test_a_record_in_a_file_is_explained(run: Any) -> None:
    raw = json.dumps(record(candidate("a"), candidate("b", wait=1.0))).encode()

    code, told, _ = run("explain", raw, "-o", "table")
    _, within, _ = run("explain", b'{"record":%b}' % raw, "-o", "json")
    _, korean, _ = run("explain", raw, "-o", "table", "--lang", "ko")

    assert code == 0
    assert told.startswith("a won by 1.00 s over b because its queue is shorter")
    assert "sum s" in told
    assert json.loads(within)["explanation"]["sentence"] in told
    assert "선택" in korean


@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param(b"not json", 2, id="text"),
        pytest.param(b"\xff\xfe\xfd", 2, id="bytes"),
        pytest.param(b"[" * 100_000, 2, id="deep"),
        pytest.param(b"[]", 4, id="list"),
        pytest.param(b"{}", 0, id="empty"),
        pytest.param(b'{"candidates": 3, "destination": [], "refusal": "x"}', 0, id="types"),
        pytest.param(
            b'{"destination": "a", "candidates": [{"endpoint": "a", "terms": {"total": null}},'
            b' {"endpoint": "b", "terms": {"wait": "long"}}, 7]}',
            0,
            id="terms",
        ),
        pytest.param(b'{"margin_seconds": 1e999, "candidate_count": -3}', 0, id="numbers"),
    ],
)
def test_any_file_gets_a_sentence_or_an_exit_code(run: Any, content: bytes, code: int) -> None:
    found, told, error = run("explain", content, "-o", "table")

    assert found == code
    assert told.strip() or error.strip()
    assert "Traceback" not in told + error


def test_a_configuration_becomes_part_of_a_pool_document_and_notes_stand_apart(run: Any) -> None:
    code, told, notes = run("convert", WEIGHTED.encode())

    assert code == 0
    assert json.loads(told)["policy"]["name"] == "weighted"
    assert "kept /plugins/2 file-discovery" in notes


def test_it_goes_into_a_document_and_comes_back_out(run: Any, tmp_path: Path) -> None:
    pool, base = tmp_path / "pool.json", tmp_path / "base.yaml"
    pool.write_text(json.dumps(document_dict(endpoint_dict("a"))))
    base.write_text(WEIGHTED)

    _, document, _ = run("convert", WEIGHTED.encode(), "--into", str(pool))
    code, back, _ = run("convert", document.encode(), "--base", str(base), "-o", "table")

    assert json.loads(document)["endpoints"][0]["id"] == "a"
    assert code == 0
    assert "type: file-discovery" in back


def test_what_is_refused_is_said_with_its_place(run: Any) -> None:
    code, told, error = run("convert", b'{"policy": {"name": "best"}}')

    assert (code, told) == (4, "")
    assert "at /policy/name" in error
    assert "consort" in error
