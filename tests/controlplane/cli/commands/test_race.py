"""`consort race`."""

import json
from pathlib import Path

import pytest

from controlplane.cli.commands.race import MISSED, is_missed
from controlplane.cli.main import main
from controlplane.cli.racing import Shelf
from routing.simulator.race.cases import CASES
from routing.simulator.race.heat import Heat, HeatReport
from routing.simulator.race.judges import Verdict
from routing.simulator.race.outcome import RaceReport
from tests.routing.simulator.race.rows import stage

QUICK = ["race", "--quick", "--seeds", "1", "--rows", "nxt-granite-6k@nxt-4xh100nvl",
         "--policies", "random,consort", "--processes", "1"]  # fmt: skip


def test_a_race_prints_its_table_and_leaves_json_and_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*QUICK, "--out", str(tmp_path), "-o", "table"])

    told = capsys.readouterr()
    assert code == 0
    assert "A quick race judges nothing" in told.err
    assert "not judged: stages too short" in told.out
    assert "nxt-granite-6k@nxt-4xh100nvl  10 qps" in told.out
    assert "never worse than random choice by more than 1 %" in told.out
    assert "Written: race.json, race.html and race.ko.html" in told.err
    report = json.loads((tmp_path / "race.json").read_bytes())
    assert set(report["rows"][0]["policies"]) == {"random", "consort"}
    assert "<h1>Routing policies against each other</h1>" in (tmp_path / "race.html").read_text()
    assert "라우팅 정책 비교" in (tmp_path / "race.ko.html").read_text()


def test_the_same_race_again_gives_the_same_bytes(tmp_path: Path) -> None:
    main([*QUICK, "--out", str(tmp_path)])
    first = (tmp_path / "race.json").read_bytes()

    main([*QUICK, "--out", str(tmp_path / "again")])

    assert (tmp_path / "again" / "race.json").read_bytes() == first


def test_parameters_of_the_policy_change_what_consort_does_and_nobody_else(tmp_path: Path) -> None:
    main([*QUICK, "--out", str(tmp_path)])
    plain = json.loads((tmp_path / "race.json").read_bytes())["rows"][0]["policies"]

    main([*QUICK, "--parameter", "capacity_weight=0", "--out", str(tmp_path)])

    changed = json.loads((tmp_path / "race.json").read_bytes())["rows"][0]["policies"]
    assert changed["random"]["ttft_p50_s"] == plain["random"]["ttft_p50_s"]
    assert changed["consort"] != plain["consort"]


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--rows", "x@y"], "No case 'x@y'"),
        (["--policies", "luck"], "No policy 'luck'"),
        (["--seeds", "0"], "--seeds is 1 to 20"),
        (["--processes", "0"], "--processes is 1 to 64"),
        (["--parameter", "tie_share"], "--parameter is NAME=NUMBER"),
        (["--parameter", "luck=1"], "luck"),
    ],
)
def test_what_cannot_be_raced_is_refused_in_a_sentence(
    flags: list[str], word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*QUICK, *flags, "--out", str(tmp_path)])

    assert code == 2
    assert word in capsys.readouterr().err
    assert not (tmp_path / "race.json").exists()


def test_the_list_names_cases_and_policies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["race", "--list", "-o", "json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == list(CASES)
    assert "consort" in told["policies"]


def test_a_missed_demand_is_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Finished heats, in which consort answers a tenth of what random choice does.
    shelf = Shelf(tmp_path / "race")
    for policy, goodput in (("consort", 1.0), ("random", 10.0)):
        heat = Heat(case="nxt-granite-6k@nxt-4xh100nvl", policy=policy, seed=1)
        shelf.put(HeatReport(heat=heat, stages=(stage(goodput),)))

    flags = [flag for flag in QUICK if flag != "--quick"]

    assert main([*flags, "--out", str(tmp_path), "-o", "table"]) == MISSED
    told = capsys.readouterr()
    assert "MISSED" in told.out
    assert "not judged: did not run" in told.out
    assert "This was a part of the race: 3 of 5 demands were not judged" in told.err


def test_a_part_of_a_race_without_the_best_peer_does_not_meet_the_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shelf = Shelf(tmp_path / "race")
    for policy, goodput in (("consort", 10.0), ("random", 1.0)):
        heat = Heat(case="nxt-granite-6k@nxt-4xh100nvl", policy=policy, seed=1)
        shelf.put(HeatReport(heat=heat, stages=(stage(goodput),)))

    flags = [flag for flag in QUICK if flag != "--quick"]

    assert main([*flags, "--out", str(tmp_path), "-o", "table"]) == 0
    told = capsys.readouterr()
    assert "not judged: not every peer ran" in told.out
    assert "4 of 5 demands were not judged; they are not met." in told.err


def test_a_whole_race_in_which_a_demand_has_no_row_does_not_end_well() -> None:
    verdict = Verdict(
        demand="goodput-over-llm-d", row="r", figure=None, bar=1.5, against="", is_met=None,
        why_open="not-run",
    )  # fmt: skip
    report = RaceReport(is_quick=False, rows=(), verdicts=(verdict,))

    assert is_missed(report, is_whole=True)
    assert not is_missed(report, is_whole=False)
