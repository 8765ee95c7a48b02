"""Heats on several processes, with finished ones kept."""

from pathlib import Path

import pytest

from controlplane.cli import racing
from controlplane.cli.racing import MOST_VERSIONS, Shelf, race
from routing.simulator.race.heat import Heat, run_heat

HEATS = [
    Heat(case="nxt-granite-6k@nxt-4xh100nvl", policy=policy, seed=1, is_quick=True)
    for policy in ("random", "consort")
]


def _silent(done: int) -> None:
    pass


def test_reports_come_in_the_order_of_the_heats_and_equal_those_of_one_process(
    tmp_path: Path,
) -> None:
    reports = race(HEATS, shelf=Shelf(tmp_path), processes=2, progress=_silent)

    assert reports == [run_heat(heat) for heat in HEATS]


def test_what_is_on_the_shelf_is_not_run_again(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    for heat in HEATS:
        shelf.put(run_heat(heat))
    told: list[int] = []

    # With no process nothing could be run.
    reports = race(HEATS, shelf=Shelf(tmp_path), processes=0, progress=told.append)

    assert [report.heat for report in reports] == HEATS
    assert told == [2]


def test_an_interrupt_leaves_finished_heats_on_the_shelf(tmp_path: Path) -> None:
    def interrupt(done: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        race(HEATS, shelf=Shelf(tmp_path), processes=1, progress=interrupt)

    kept = [Shelf(tmp_path).get(heat) for heat in HEATS]
    assert [report is not None for report in kept] == [True, False]


def test_other_fields_are_another_heat(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put(run_heat(HEATS[0]))

    other = Heat(case=HEATS[0].case, policy="random", seed=2, is_quick=True)

    assert shelf.get(HEATS[0]) is not None
    assert shelf.get(other) is None


def test_a_damaged_file_is_run_again(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put(run_heat(HEATS[0]))
    (kept,) = tmp_path.glob("*/*.json")
    kept.write_bytes(kept.read_bytes()[:100])

    assert shelf.get(HEATS[0]) is None


def test_changed_code_has_a_shelf_of_its_own_and_old_ones_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Shelf(tmp_path).put(run_heat(HEATS[0]))
    for number in range(MOST_VERSIONS + 2):
        monkeypatch.setattr(racing, "code_version", lambda number=number: f"version-{number}")
        assert Shelf(tmp_path).get(HEATS[0]) is None

    assert len(list(tmp_path.iterdir())) == MOST_VERSIONS
