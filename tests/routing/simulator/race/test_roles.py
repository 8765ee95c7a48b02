"""Whether a split of roles pays."""

import pytest

from routing.simulator.race.heat import Heat, HeatReport
from routing.simulator.race.roles import advice_of, split_rows
from tests.routing.simulator.race.rows import stage


def _report(split: str, goodput: float, *, seed: int = 1, share: float = 0.9) -> HeatReport:
    heat = Heat(case=f"split:pd-5k@{split}", policy="consort", seed=seed)
    return HeatReport(heat=heat, stages=(stage(goodput, share=share, pairs=0.5),))


def test_splits_are_compared_with_all_both_over_the_seeds() -> None:
    reports = [
        _report("nxt-3vendor", 9.0), _report("nxt-3vendor", 11.0, seed=2),
        _report("split-fast-prefills", 12.0), _report("split-fast-prefills", 14.0, seed=2),
    ]  # fmt: skip

    rows = {row.split: row for row in split_rows(reports)}

    assert rows["nxt-3vendor"].against_both == 1.0
    assert rows["split-fast-prefills"].goodput_rps == 13.0
    assert rows["split-fast-prefills"].against_both == pytest.approx(1.3)
    assert rows["split-fast-prefills"].pair_share == 0.5


@pytest.mark.parametrize(("goodput", "pays"), [(11.0, True), (10.9, False), (8.0, False)])
def test_a_split_pays_from_a_tenth_more_goodput(goodput: float, pays: bool) -> None:
    reports = [_report("nxt-3vendor", 10.0), _report("split-memory-prefills", goodput)]

    (advice,) = advice_of(split_rows(reports))

    assert advice.pays is pays
    assert advice.best_split == "split-memory-prefills"


def test_more_of_next_to_nothing_is_no_gain() -> None:
    reports = [
        _report("nxt-3vendor", 2.0, share=0.04),
        _report("split-fast-prefills", 3.4, share=0.07),
    ]

    (advice,) = advice_of(split_rows(reports))

    assert advice.gain == pytest.approx(1.7)
    assert not advice.pays


def test_without_a_run_of_all_both_nothing_is_advised() -> None:
    (advice,) = advice_of(split_rows([_report("split-memory-prefills", 10.0)]))

    assert advice.gain is None
    assert not advice.pays


def test_heats_of_the_race_are_no_splits() -> None:
    heat = Heat(case="pd-5k@pd-4p4d-mi325x", policy="consort", seed=1)

    assert split_rows([HeatReport(heat=heat, stages=(stage(1.0),))]) == []
