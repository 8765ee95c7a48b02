"""`consort plan`, without a server and without a token."""

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli.main import main

FLEET = """currency: USD
groups:
  - {name: mi325x, accelerator: amd-mi325x, nodes: 1, accelerators_per_node: 2, price_per_hour: "3"}
demands:
  - model: granite-4.1-8b
    traffic: {rate_qps: 2, prompt_tokens: 600, output_tokens: 40}
    now: {mi325x: {both: 2}}
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any) -> Any:
    """A command with few requests, in a folder of its own, and what it told."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet.yaml").write_text(FLEET)

    def asked(*arguments: str) -> tuple[int, str, str]:
        code = main(("plan", *arguments))
        told = capsys.readouterr()
        return code, told.out, told.err

    return asked


def test_a_fleet_gives_its_advice_first_with_reasons_and_the_model_error(run: Any) -> None:
    code, told, noted = run("fleet.yaml", "--requests", "300", "-o", "table")

    assert code == 0
    assert "* now" in told.splitlines()[1]
    assert "meet the targets" in told
    assert "Do not split" in told
    assert "Model error (medians): 15 % of throughput" in noted


def test_reasons_may_be_korean(run: Any) -> None:
    _code, told, noted = run("fleet.yaml", "--requests", "300", "-o", "table", "--lang", "ko")

    assert "목표를 지킵니다" in told
    assert "시뮬레이션 추정" in noted


def test_the_plan_is_a_file_that_equal_seeds_repeat(run: Any, tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        assert run("fleet.yaml", "--requests", "300", "--seed", "7", "--out", name)[0] == 0

    first = (tmp_path / "a.json").read_bytes()
    assert first == (tmp_path / "b.json").read_bytes()
    assert json.loads(first)["pools"][0]["verdict"] == "keep"


def test_a_pool_that_cannot_be_served_ends_with_1(run: Any, tmp_path: Path) -> None:
    refusing = FLEET.replace('price_per_hour: "3"', "refuses: {granite-4.1-8b: no image}")
    (tmp_path / "none.yaml").write_text(refusing)

    code, told, _noted = run("none.yaml", "-o", "table")

    assert code == 1
    assert "impossible" in told
    assert "no image" in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("groups: [", "is no YAML"),
        ("groups: 2026-13-45", "is no YAML"),
        ("[" * 20_000, "is no YAML"),
        ("- a", "has no members"),
        ("groups: []\ndemands: []", "groups"),
        (FLEET.replace("rate_qps: 2", "rate_qps: -2"), "rate_qps"),
        (FLEET.replace("now: {mi325x", "now: {h100"), "names the group 'h100'"),
    ],
)
def test_a_file_that_cannot_be_planned_says_where(
    run: Any, tmp_path: Path, text: str, told: str
) -> None:
    (tmp_path / "bad.yaml").write_text(text)

    code, _out, noted = run("bad.yaml")

    assert code == 4
    assert told in noted


def test_flags_have_bounds(run: Any) -> None:
    assert run("fleet.yaml", "--requests", "3")[0] == 2
    assert run("fleet.yaml", "--seed", "-1")[0] == 2
