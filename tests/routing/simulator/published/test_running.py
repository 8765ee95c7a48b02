"""Published runs as scenarios."""

from routing.core.document import Policy
from routing.simulator.profiles import load_profile
from routing.simulator.published.running import scenario_of
from routing.simulator.published.tables import table
from routing.simulator.report.stage import stage_reports
from routing.simulator.simulation import Simulation

DECODE_HEAVY = "nxt-h100nvl-granite-decode-heavy-k8s"


def test_a_fleet_and_its_policy_are_those_of_the_run() -> None:
    scenario = scenario_of(table("nxt-3v-granite-k8s"))

    assert len(scenario.document.endpoints) == 20
    assert scenario.policy == "random"
    assert scenario.surroundings.timeout_seconds == 300.0
    assert not scenario.surroundings.has_events


def test_only_precise_routers_hear_engine_events() -> None:
    assert scenario_of(table("guide-rate10")).surroundings.has_events


def test_chosen_rates_keep_the_warm_up() -> None:
    scenario = scenario_of(table(DECODE_HEAVY), rates=(12,))

    assert [stage.rate_qps for stage in scenario.workload.stages] == [5, 12]


def test_another_policy_and_other_profiles_take_the_place_of_the_published_ones() -> None:
    slow = load_profile("nvidia-h100-nvl", "granite-4.1-8b").slower(2.0)

    scenario = scenario_of(
        table(DECODE_HEAVY), policy=Policy(name="round-robin"), profiles={slow.accelerator: slow}
    )

    assert scenario.policy == "round-robin"
    assert set(scenario.profiles.values()) == {slow}


def test_a_part_of_the_pool_behaves_like_the_whole_behind_a_service() -> None:
    run = table(DECODE_HEAVY)
    tpots = []
    for replicas in (2, None):
        simulation = Simulation(scenario_of(run, rates=(3,), replicas=replicas), seed=1)
        simulation.run()
        tpot = stage_reports(simulation)[1].tpot
        assert tpot is not None
        tpots.append(tpot.mean)

    assert abs(tpots[0] / tpots[1] - 1) < 0.1


def test_a_published_pool_gives_up_no_stream_before_its_client() -> None:
    limits = scenario_of(table(DECODE_HEAVY)).document.limits

    assert limits.stall_timeout_seconds == limits.first_token_timeout_seconds == 300.0
    assert limits.attempts == 1
