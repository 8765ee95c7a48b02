"""The matrix of the race."""

import pytest

from routing.simulator.race.cases import CASES, SPLIT_CASES, case_of, chosen
from routing.simulator.race.fleets import FLEETS, SPLITS


def test_there_are_at_least_thirty_rows() -> None:
    assert sum(max(1, len(case.rates)) for case in CASES.values()) >= 30


@pytest.mark.parametrize("name", [*CASES, *SPLIT_CASES])
def test_every_case_has_a_workload_that_its_fleet_can_serve(name: str) -> None:
    case = case_of(name)
    workload = case.its_workload()

    assert FLEETS[case.fleet] is case.its_fleet
    assert len(workload.stages) == (1 + len(case.rates) if case.rates else 1)
    assert [stage.is_warm_up for stage in workload.stages][1:] == [False] * len(case.rates)


@pytest.mark.parametrize("name", CASES)
def test_a_quick_case_sends_little(name: str) -> None:
    workload = CASES[name].its_workload(is_quick=True)

    assert len(workload.stages) <= 2
    assert all((stage.rate_qps or 0) * (stage.seconds or 0) <= 600 for stage in workload.stages)


def test_no_names_choose_everything() -> None:
    assert [case.id for case in chosen([])] == list(CASES)


def test_an_unknown_case_is_refused_with_what_is_known() -> None:
    with pytest.raises(ValueError, match=r"No case 'x@y'\. Known are: nxt-granite-6k@nxt-3vendor"):
        chosen(["x@y"])


def test_the_splits_are_the_same_endpoints_in_other_roles() -> None:
    shapes = {
        tuple((member.accelerator, member.count) for member in FLEETS[name].members)
        for name in SPLITS
    }
    roles = {tuple(member.role for member in FLEETS[name].members) for name in SPLITS}

    assert len(shapes) == 1
    assert len(roles) == len(SPLITS)
