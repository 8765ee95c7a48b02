"""The bound behaves as queues do."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.planner.engines import Engine, engine_of
from routing.planner.estimate import engine_bound, estimate, load_of
from routing.planner.placement import Share
from routing.planner.problem import Demand, Target
from tests.routing.planner.fleets import demand, group


def engines(*names: str, **options: Any) -> dict[str, Engine]:
    found = {}
    for name in names:
        engine = engine_of(group(name, **options), demand(), 1)
        assert isinstance(engine, Engine)
        found[name] = engine
    return found


def both(count: int, name: str = "amd-mi325x") -> tuple[Share, ...]:
    return (Share(group=name, width=1, both=count),)


def test_twice_the_engines_take_twice_the_load() -> None:
    found = engines("amd-mi325x")

    one = estimate(both(3), found, demand()).capacity_rps
    two = estimate(both(6), found, demand()).capacity_rps

    assert two == pytest.approx(2 * one)


@settings(deadline=None, max_examples=50)
@given(
    prompt=st.integers(100, 20_000), output=st.integers(1, 2000), longer=st.integers(1, 5000)
)  # fmt: skip
def test_longer_work_never_raises_the_bound(prompt: int, output: int, longer: int) -> None:
    engine = engines("intel-gaudi3")["intel-gaudi3"]

    def bound(prompt_tokens: int, output_tokens: int) -> float:
        lengths = {"prompt_tokens": prompt_tokens, "output_tokens": output_tokens}
        return engine_bound(engine, "both", demand(lengths=lengths))

    assert bound(prompt + longer, output) <= bound(prompt, output) * (1 + 1e-6)
    assert bound(prompt, output + longer) <= bound(prompt, output) * (1 + 1e-6)


@settings(deadline=None, max_examples=50)
@given(st.floats(0.005, 1.0), st.floats(1.0, 4.0))
def test_a_looser_target_never_lowers_the_bound(tpot: float, factor: float) -> None:
    engine = engines("nvidia-h100-nvl")["nvidia-h100-nvl"]

    def bound(tpot_seconds: float) -> float:
        return engine_bound(engine, "both", demand(target=Target(tpot_seconds=tpot_seconds)))

    assert bound(tpot) <= bound(tpot * factor) * (1 + 1e-6)


def test_a_target_below_an_empty_step_is_kept_at_no_rate() -> None:
    asked = demand(target=Target(tpot_seconds=0.001))

    found = estimate(both(4), engines("amd-mi325x"), asked)

    assert found.capacity_rps == 0
    assert found.limited_by == "target"
    assert load_of(found, asked) == float("inf")


def test_pairs_take_what_the_weaker_end_takes() -> None:
    known = engines("amd-mi325x")
    lengths = {"prompt_tokens": 4000, "output_tokens": 400}

    def capacity(prefill: int, decode: int) -> float:
        placement = (Share(group="amd-mi325x", width=1, prefill=prefill, decode=decode),)
        return estimate(placement, known, demand(lengths=lengths)).capacity_rps

    assert capacity(1, 7) == pytest.approx(capacity(1, 6))
    assert capacity(2, 6) > capacity(1, 7)


def test_shared_beginnings_help_as_far_as_they_fit() -> None:
    known = engines("intel-gaudi3")

    def capacity(groups: int) -> float:
        lengths = {"prompt_tokens": 8000, "shared_tokens": 6000, "groups": groups}
        return estimate(both(4, "intel-gaudi3"), known, demand(lengths=lengths)).capacity_rps

    assert capacity(20) > capacity(2000) >= capacity(0) * (1 - 1e-9)


def test_a_handful_of_sequences_in_a_small_memory_bounds_the_rate() -> None:
    long_answers: Demand = demand(lengths={"prompt_tokens": 20_000, "output_tokens": 4000})
    known = engines("nvidia-h100-nvl")

    rate = engine_bound(known["nvidia-h100-nvl"], "both", long_answers)

    sequences = known["nvidia-h100-nvl"].profile.kv_tokens / 24_000
    step = known["nvidia-h100-nvl"].profile.step_seconds
    assert 0 < rate <= sequences / (4000 * step)


def test_experts_that_are_read_slow_a_token_down() -> None:
    engine = engines("amd-mi325x")["amd-mi325x"]
    experts = replace(engine.profile, step_seconds_of_experts=0.01, untouched_share=0.9)
    asked = demand(target=Target(tpot_seconds=0.02))

    dense = engine_bound(engine, "both", asked)
    mixed = engine_bound(replace(engine, profile=experts), "both", asked)

    assert 0 < mixed < dense
