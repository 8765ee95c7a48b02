"""`consort route import`, without a server and without a token."""

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli.main import main
from tests.routing.llmd.objects.samples import OBJECTIVES, POOL, REWRITES, ROUTE
from tests.routing.pool.builders import document_dict, endpoint_dict


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("CONSORT_URL", "CONSORT_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Write files by name and import them; the document is always there."""
    raw = json.dumps(document_dict(endpoint_dict("a")))
    (tmp_path / "document.json").write_text(raw)

    def asked(texts: dict[str, str], *more: str) -> tuple[int, str, str]:
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        code = main(["route", "import", *texts, *more])
        told = capsys.readouterr()
        return code, told.out, told.err

    return asked


def test_files_become_part_of_a_document(run: Any) -> None:
    code, told, notes = run({"pool.yaml": POOL, "objectives.yaml": OBJECTIVES}, "-o", "json")

    part = json.loads(told)
    assert code == 0
    assert part["objectives"] == {"batch": -5, "interactive": 10, "usual": 0}
    assert (part["target_ports"], part["failure_mode"]) == ([8000, 8001], "FailOpen")
    assert "renamed objectives.yaml/1/apiVersion" in notes


def test_what_would_change_in_a_document_is_a_table(run: Any) -> None:
    more = ("--into", "document.json", "-o", "table")

    code, told, notes = run({"canary.yaml": REWRITES, "route.yaml": ROUTE}, *more)

    assert code == 0
    assert told.splitlines()[0].split() == ["where", "before", "after"]
    assert "/rewrites/1" in told
    assert '"weight": 90' in told
    assert "adapted /rewrites/1/targets/1/model granite-v2" in notes


def test_the_changed_document_is_printed_for_programs(run: Any, tmp_path: Path) -> None:
    more = ("--into", "document.json", "-o", "json")
    _, told, _ = run({"canary.yaml": REWRITES}, *more)
    (tmp_path / "document.json").write_text(json.dumps(json.loads(told)["document"]))

    _, again, _ = run({"canary.yaml": REWRITES}, *more)
    _, shown, _ = run({"canary.yaml": REWRITES}, "--into", "document.json", "-o", "table")

    assert json.loads(told)["document"]["version"] == 2
    assert json.loads(again)["changes"] == []
    assert shown.strip() == "Nothing changes."


def test_a_wrong_object_is_refused_with_file_and_place(run: Any) -> None:
    code, _, error = run({"pool.yaml": POOL.replace("8001", "'8001'")})

    assert code == 4
    assert "pool.yaml/0/spec/targetPorts/1/number" in error


def test_several_pools_need_a_name(run: Any) -> None:
    texts = {"a.yaml": POOL, "b.yaml": OBJECTIVES.replace("llama", "phi")}

    refused, _, error = run(texts)
    code, told, _ = run(texts, "--pool", "phi", "-o", "json")

    assert refused == 4
    assert "llama, phi" in error
    assert code == 0
    assert json.loads(told)["objectives"]["interactive"] == 10
