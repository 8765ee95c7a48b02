"""Rows of heats: means over seeds and intervals of differences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.simulator.race.cases import SPLIT_CASES
from routing.simulator.race.heat import Heat, HeatReport
from routing.simulator.race.standings import interval_of, rows_of
from tests.routing.simulator.race.rows import stage

CASE = "nxt-granite-6k@nxt-3vendor"


def _report(policy: str, seed: int, *goodputs: float, case: str = CASE) -> HeatReport:
    heat = Heat(case=case, policy=policy, seed=seed)
    return HeatReport(heat=heat, stages=tuple(stage(value) for value in goodputs))


def test_every_stage_is_a_row_with_all_policies() -> None:
    rows = rows_of([_report("consort", 1, 5.0, 6.0), _report("random", 1, 3.0, 2.0)])

    assert [row.policies["consort"].goodput_rps for row in rows] == [5.0, 6.0]
    assert [row.policies["random"].goodput_rps for row in rows] == [3.0, 2.0]
    assert rows[0].is_mixed


def test_differences_are_taken_between_equal_seeds() -> None:
    # Seeds differ much, policies by exactly one: the interval has no width.
    reports = [_report("consort", seed, 10.0 * seed) for seed in (1, 2, 3)]
    reports += [_report("random", seed, 10.0 * seed - 1.0) for seed in (1, 2, 3)]

    (row,) = rows_of(reports)

    behind = row.policies["random"]
    assert behind.goodput_behind == pytest.approx(1.0)
    assert behind.goodput_behind_low == pytest.approx(1.0)
    assert behind.goodput_behind_high == pytest.approx(1.0)
    assert row.seeds == (1, 2, 3)


def test_one_seed_has_a_difference_and_no_interval() -> None:
    (row,) = rows_of([_report("consort", 1, 5.0), _report("random", 1, 3.0)])

    assert row.policies["random"].goodput_behind == 2.0
    assert row.policies["random"].goodput_behind_low is None


def test_without_consort_there_is_nothing_to_be_behind() -> None:
    (row,) = rows_of([_report("random", 1, 3.0)])

    assert row.policies["random"].goodput_behind is None


def test_splits_of_roles_are_no_rows_of_the_race() -> None:
    assert rows_of([_report("consort", 1, 5.0, case=next(iter(SPLIT_CASES)))]) == []


def test_the_interval_is_students() -> None:
    # Three values with deviation 1: 4.303 / sqrt(3) on each side of the mean.
    low, high = interval_of([1.0, 2.0, 3.0])

    assert low == pytest.approx(2.0 - 2.4843, abs=1e-3)
    assert high == pytest.approx(2.0 + 2.4843, abs=1e-3)


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_the_mean_lies_in_its_interval(values: list[float]) -> None:
    low, high = interval_of(values)
    mean = sum(values) / len(values)

    assert low is not None
    assert high is not None
    assert low - 1e-6 <= mean <= high + 1e-6
