"""What the planner is asked: limits, and sentences for what does not fit."""

import msgspec
import pytest

from routing.planner.problem import Problem, ProblemError, Roles, parse_problem
from tests.routing.planner.fleets import demand, group, problem


def test_a_problem_survives_plain_values() -> None:
    before = problem(group(), group("intel-gaudi3"))

    assert parse_problem(msgspec.to_builtins(before)) == before


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"groups": []}, "groups"),
        ({"demands": []}, "demands"),
        ({"currency": "dollars"}, "currency"),
        ({"fleet": []}, "fleet"),
    ],
)
def test_what_does_not_fit_names_the_member(change: dict[str, object], told: str) -> None:
    values = msgspec.to_builtins(problem()) | change

    with pytest.raises(ProblemError, match=told):
        parse_problem(values)


@pytest.mark.parametrize(
    "refuses", [{"granite-4.1-8b": "x" * 501}, {f"model-{n}": "no image" for n in range(21)}]
)
def test_reasons_to_refuse_are_few_and_short(refuses: dict[str, str]) -> None:
    values = msgspec.to_builtins(problem(group(refuses=refuses)))

    with pytest.raises(ProblemError, match="refuses"):
        parse_problem(values)


def test_two_groups_need_two_names() -> None:
    with pytest.raises(ValueError, match="Two groups are called 'amd-mi325x'"):
        problem(group(), group())


def test_pools_cannot_hold_more_than_there_is() -> None:
    with pytest.raises(ValueError, match="has 4 accelerators, and pools hold 5"):
        problem(demands=(demand(now={"amd-mi325x": Roles(both=5)}),))


def test_a_pool_cannot_hold_a_group_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="names the group 'h100'"):
        problem(demands=(demand(now={"h100": Roles(both=1)}),))


def test_no_more_is_shared_than_a_prompt_has() -> None:
    with pytest.raises(ValueError, match="share at most the whole prompt"):
        problem(demands=(demand(lengths={"shared_tokens": 2000}),))


def test_a_fleet_has_a_bound() -> None:
    with pytest.raises(ValueError, match="at most 20000"):
        Problem(groups=(group(nodes=10_000, accelerators_per_node=64),), demands=(demand(),))
