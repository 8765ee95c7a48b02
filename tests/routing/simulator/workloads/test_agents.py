"""Conversations grow: a prompt is the last one, the answer to it, and a tool's result."""

import itertools
from typing import Any

import numpy as np

from routing.simulator.fleet import Member, build_fleet
from routing.simulator.requests import Arrival
from routing.simulator.scenario import Scenario
from routing.simulator.simulation import Simulation
from routing.simulator.workloads.agents import Agents
from routing.simulator.workloads.open_loop import ladder
from tests.routing.simulator.workloads.draws import chain, drawn, shared_blocks


def _agents(**changes: Any) -> Agents:
    return Agents(id="a", stages=ladder((20, 60)), **changes)


def _turns() -> list[list[Arrival]]:
    return [list(chain(first)) for first in drawn(_agents())]


def test_the_next_prompt_begins_with_the_last_one_and_its_answer() -> None:
    for turns in _turns():
        for turn, following in itertools.pairwise(turns):
            known = turn.prompt.keys + turn.answer_keys
            assert following.prompt.keys[: len(known)] == known
            assert following.prompt.tokens > turn.prompt.tokens + turn.output_tokens


def test_agents_of_an_application_share_its_system_prompt() -> None:
    firsts = [turns[0] for turns in _turns()]

    beginnings = {first.prompt.keys[:40] for first in firsts}
    most_shared = max(shared_blocks(firsts[0], other) for other in firsts[1:])

    # Four applications, and what their sub-agents share.
    assert len(beginnings) == 8
    assert most_shared in (6000 // 64, 3000 // 64)


def test_arrivals_are_in_order_and_sessions_apart() -> None:
    firsts = drawn(_agents())

    assert [first.at for first in firsts] == sorted(first.at for first in firsts)
    assert len({first.session for first in firsts}) == len(firsts)


def test_the_rate_is_about_that_of_requests() -> None:
    requests = sum(len(turns) for turns in _turns())

    # 1,200 requests in a minute; sessions of geometric length make it vary.
    assert 700 < requests < 1700


def test_no_conversation_is_longer_than_allowed() -> None:
    longest = max(
        one.prompt.tokens + one.output_tokens
        for first in drawn(_agents(most_tokens=9000))
        for one in chain(first)
    )

    assert 8000 < longest <= 9000


def test_an_answer_is_found_again_by_the_next_turn() -> None:
    fleet = build_fleet([Member(accelerator="amd-mi325x", count=1)], model="granite-4.1-8b")
    workload = Agents(id="a", stages=ladder((3, 20)), sub_agents=0.0)
    scenario = Scenario(document=fleet.document, profiles=fleet.profiles, workload=workload)
    run = Simulation(scenario, seed=2)
    run.run()
    later = [course for course in run.courses if course.arrival.prompt.tokens > 9000]

    missing = [course.arrival.prompt.tokens - course.cached_tokens for course in later]

    # A tool's result of 700 tokens on average, and less than two blocks.
    assert np.mean(missing) < 700 + 128 + 150
