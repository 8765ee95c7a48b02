"""One run of the race."""

import msgspec
import pytest

from routing.simulator.race.heat import (
    POLICIES,
    Heat,
    chosen_policies,
    parameters_of,
    run_heat,
    scenario_of,
)
from routing.simulator.simulation import Simulation

HEAT = Heat(case="nxt-granite-6k@one-sick", policy="consort", seed=1, is_quick=True)


def test_equal_heats_give_equal_bytes() -> None:
    first, second = run_heat(HEAT), run_heat(HEAT)

    assert msgspec.json.encode(first) == msgspec.json.encode(second)
    assert [stage.is_warm_up for stage in first.stages] == [False]
    assert first.stages[0].ok > 0


def test_every_policy_meets_the_same_requests() -> None:
    runs = []
    for policy in ("random", "llm-d-weighted"):
        run = Simulation(scenario_of(msgspec.structs.replace(HEAT, policy=policy)), seed=1)
        run.advance(2.0)
        runs.append([(one.sent_at, one.arrival.prompt.keys) for one in run.courses])

    assert len(runs[0]) > 5
    assert runs[0] == runs[1]


def test_another_seed_meets_others() -> None:
    one, other = (Simulation(scenario_of(HEAT), seed=seed) for seed in (1, 2))
    one.advance(1.0)
    other.advance(1.0)

    assert [c.sent_at for c in one.courses] != [c.sent_at for c in other.courses]


def test_a_report_survives_its_file() -> None:
    report = run_heat(HEAT)

    assert msgspec.json.decode(msgspec.json.encode(report), type=type(report)) == report


def test_the_pool_states_the_targets_unless_told_not_to() -> None:
    silent = msgspec.structs.replace(HEAT, knows_slo=False)

    assert scenario_of(HEAT).document.slo.ttft_seconds == 3.0
    assert scenario_of(silent).document.slo.ttft_seconds is None
    assert scenario_of(silent).ttft_target_seconds == 3.0


def test_parameters_reach_the_policy_and_unknown_ones_are_refused() -> None:
    changed = msgspec.structs.replace(HEAT, parameters={"leave_home_factor": 2.0})

    assert scenario_of(changed).document.policy.parameters.leave_home_factor == 2.0
    with pytest.raises(msgspec.ValidationError, match="luck"):
        parameters_of({"luck": 1.0})


def test_all_policies_of_the_design_race() -> None:
    assert set(POLICIES) == {
        "random", "round-robin", "least-requests", "power-of-two", "session-hash",
        "sglang-cache-aware", "llm-d-weighted", "llm-d-precise", "llm-d-token-aware", "dynamo",
        "consort",
    }  # fmt: skip
    assert chosen_policies([]) == list(POLICIES)


def test_an_unknown_policy_is_refused_with_what_is_known() -> None:
    with pytest.raises(ValueError, match=r"No policy 'luck'\. Known are: random"):
        chosen_policies(["luck"])
