"""`consort simulate` and `consort replay`, without a server and without a token."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli.main import main
from routing.core.document import encode_document
from tests.architecture.sources import ROOT
from tests.routing.pool.builders import SPEED, endpoint_dict, make_document

SCENARIO = """model: granite-4.1-8b
fleet:
  - {accelerator: amd-mi325x, count: 2}
workload: {id: no-sharing, stages: [[4, 3], [8, 3]], warm_up_stages: 1}
"""
LINES = b"".join(
    b'{"timestamp": %d, "input_length": 600, "output_length": 5, "hash_ids": [1, %d]}\n'
    % (1000 * at, at + 2)
    for at in range(20)
)

MODEL = ("--model", "granite-4.1-8b")

Told = tuple[int, str, str]


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    (tmp_path / "trace.jsonl").write_bytes(LINES)
    for name in ("CONSORT_URL", "CONSORT_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """A command and what it told."""

    def asked(*arguments: str) -> Told:
        code = main(arguments)
        told = capsys.readouterr()
        return code, told.out, told.err

    return asked


def test_a_scenario_gives_a_row_per_stage(run: Any) -> None:
    code, told, noted = run("simulate", "scenario.yaml", "-o", "table")

    head, *rows = told.splitlines()
    assert code == 0
    assert head.startswith("policy")
    assert "TTFT p50 s" in head
    assert [row.split()[0] for row in rows] == ["consort", "consort"]
    assert "4 qps (warm-up)" in rows[0]
    assert "All numbers are simulated." in noted


def test_policies_and_seeds_of_the_flags_go_before_those_of_the_file(run: Any) -> None:
    code, told, _ = run(
        "simulate", "scenario.yaml", "--compare", "random, dynamo", "--seed", "5", "-o", "json"
    )

    report = json.loads(told)
    assert code == 0
    assert [(one["policy"], one["seed"]) for one in report["runs"]] == [
        ("random", 5),
        ("dynamo", 5),
    ]
    assert report["kind"] == "simulated"


def test_a_report_is_written_and_the_same_again(run: Any, tmp_path: Path) -> None:
    for name in ("one.json", "two.json"):
        assert run("simulate", "scenario.yaml", "--out", f"reports/{name}")[0] == 0

    one, two = (tmp_path / "reports" / name for name in ("one.json", "two.json"))
    assert one.read_bytes() == two.read_bytes()
    assert json.loads(one.read_bytes())["runs"][0]["stages"][1]["sent"] > 10


@pytest.mark.parametrize(
    ("language", "words"), [("en", "Prompts that were cut"), ("ko", "자른 프롬프트")]
)
def test_a_page_is_written_in_both_languages(
    run: Any, tmp_path: Path, language: str, words: str
) -> None:
    code, *_ = run(
        "replay", "trace.jsonl", "--longest-tokens", "512", "--seed", "1", "--seed", "2",
        "--out", "report.html", "--lang", language,
    )  # fmt: skip

    page = (tmp_path / "report.html").read_text()
    assert code == 0
    assert f'lang="{language}"' in page
    assert "consort, 2" in page
    assert words in page


@pytest.mark.processes
def test_an_interrupt_leaves_no_report(tmp_path: Path) -> None:
    long = SCENARIO.replace("[8, 3]", "[8, 3000]")
    (tmp_path / "scenario.yaml").write_text(long)
    command = [
        sys.executable,
        "-m",
        "controlplane.cli",
        "simulate",
        str(tmp_path / "scenario.yaml"),
    ]
    with subprocess.Popen(
        [*command, "--out", str(tmp_path / "report.json")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A parent that ignores interrupts, as shells in the background do, hands that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as started:
        assert started.stderr is not None
        begun = started.stderr.readline()
        started.send_signal(signal.SIGINT)
        told, _ = started.communicate(timeout=60)

    assert b"% consort, seed 1" in begun
    assert (started.returncode, told) == (130, b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scenario.yaml", "trace.jsonl"]


@pytest.mark.parametrize("flags", [(), ("--format", "mooncake")])
def test_a_trace_is_replayed_faster(run: Any, flags: tuple[str, ...]) -> None:
    code, told, _ = run(
        "replay",
        "trace.jsonl",
        "--fleet",
        "amd-mi325x=2",
        *MODEL,
        "--speed",
        "x8",
        "-o",
        "json",
        *flags,
    )

    (one,) = json.loads(told)["runs"]
    assert code == 0
    assert one["stages"][0]["name"] == "speed 8"
    assert one["stages"][0]["sent"] == 20


def test_a_pool_document_is_a_fleet(run: Any, tmp_path: Path) -> None:
    name = "amd-mi325x/granite-4.1-8b"
    document = make_document(endpoint_dict("e", speed_class=name), speed_classes={name: SPEED})
    (tmp_path / "pool.json").write_bytes(encode_document(document))

    code, told, _ = run("replay", "trace.jsonl", "--pool", "pool.json", "-o", "json")

    assert code == 0
    assert json.loads(told)["fleet"] == {name: 1}


def test_a_limit_and_a_longest_prompt(run: Any) -> None:
    code, told, noted = run(
        "replay", "trace.jsonl", "--fleet", "nxt-3vendor", "--limit", "5",
        "--longest-tokens", "512", "-o", "json",
    )  # fmt: skip

    assert code == 0
    assert json.loads(told)["runs"][0]["stages"][0]["sent"] == 5
    assert "cut to 512 tokens: 5." in noted


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(("simulate", "gone.yaml"), 2, "cannot be read", id="no-file"),
        pytest.param(("simulate", "trace.jsonl"), 4, "trace.jsonl: ", id="no-scenario"),
        pytest.param(
            ("simulate", "scenario.yaml", "--policy", "x"), 2, "Allowed: random", id="policy"
        ),
        pytest.param(("simulate", "scenario.yaml", "--seed", "-3"), 2, "--seed is 0", id="seed"),
        pytest.param(
            ("simulate", "scenario.yaml", "--out", "r.pdf"), 2, ".json or .html", id="report"
        ),
        pytest.param(("replay", "gone.jsonl"), 2, "cannot be read", id="no-trace"),
        pytest.param(
            ("replay", "scenario.yaml", "--format", "mooncake"), 4, "Line 1: ", id="trace"
        ),
        pytest.param(("replay", "trace.jsonl", "--speed", "fast"), 2, "--speed is", id="speed"),
        pytest.param(("replay", "trace.jsonl", "--speed", "0"), 4, "> 0", id="no-speed"),
        pytest.param(
            ("replay", "trace.jsonl", "--fleet", "a=2"), 4, "name of the model", id="model"
        ),
        pytest.param(("replay", "trace.jsonl", "--fleet", "x"), 4, "nxt-3vendor", id="fleet"),
        pytest.param(("replay", "trace.jsonl", "--fleet", "x=y"), 2, "--fleet is", id="members"),
        pytest.param(
            ("replay", "trace.jsonl", "--fleet", "x=2", *MODEL), 4, "No profile", id="unknown"
        ),
    ],
)
def test_what_cannot_be_done_is_said(
    run: Any, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ended, told, noted = run(*arguments)

    assert (ended, told) == (code, "")
    assert words in noted


def test_help_needs_neither_the_simulator_nor_django() -> None:
    code = (
        "import sys; from controlplane.cli.main import parser; parser();"
        "print([name for name in ('numpy', 'yaml', 'msgspec', 'django', 'routing.simulator')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)

    assert done.stdout.strip() in ("[]", "['msgspec']")
