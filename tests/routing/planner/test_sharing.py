"""Which accelerators serve which model."""

from hypothesis import given, settings
from hypothesis import strategies as st

from routing.planner.placement import accelerators_in
from routing.planner.problem import Problem
from routing.planner.sharing import share_out
from tests.routing.planner.fleets import demand, group, problem


def fleet(rates: list[float], nodes: list[int]) -> Problem:
    names = ("nvidia-h100-nvl", "amd-mi325x", "intel-gaudi3")
    groups = [group(name, nodes=count) for name, count in zip(names, nodes, strict=False)]
    demands = tuple(demand(rate, pool=f"pool-{number}") for number, rate in enumerate(rates))
    return problem(*groups, demands=demands)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(0.1, 200), min_size=1, max_size=5),
    st.lists(st.integers(1, 12), min_size=1, max_size=3),
)
def test_nothing_is_given_twice(rates: list[float], nodes: list[int]) -> None:
    asked = fleet(rates, nodes)

    shared = share_out(asked)

    for one in asked.groups:
        given_away = sum(
            share.accelerators
            for placement in shared.placements.values()
            for share in placement
            if share.group == one.name
        )
        assert given_away <= one.accelerators


def test_one_model_gets_everything() -> None:
    asked = fleet([1.0], [2, 3, 1])

    shared = share_out(asked)

    assert accelerators_in(shared.placements["pool-0"]) == 24


def test_more_load_gets_more_accelerators() -> None:
    shared = share_out(fleet([90.0, 10.0], [10]))

    busy, calm = (accelerators_in(shared.placements[f"pool-{number}"]) for number in (0, 1))

    assert busy > 4 * calm
    assert calm > 0


def test_a_model_that_runs_on_one_vendor_only_gets_that_vendor() -> None:
    refusing = group("intel-gaudi3", nodes=4, refuses={"granite-4.1-8b": "no image"})
    open_to_all = group(nodes=4)
    other = demand(5.0, model="qwen", pool="other", shape=None)
    asked = problem(refusing, open_to_all, demands=(demand(5.0, pool="granite"), other))

    shared = share_out(asked)

    assert {share.group for share in shared.placements["granite"]} == {"amd-mi325x"}
    assert shared.placements["other"] == ()
    assert shared.refusals["other", "amd-mi325x"].code == "unknown-figures"
