"""Requests whose answers pass elsewhere: what they weigh, and what is concluded of their end."""

import msgspec
import pytest

from routing.core.lease import Lease
from routing.core.request import InferenceRequest
from routing.core.signals import EngineSignals
from routing.pool.router import PoolRouter
from tests.routing.pool.builders import endpoint_dict, make_request, make_router

_WHOLE = make_request("word " * 6000)
PROMPT = msgspec.structs.replace(_WHOLE, parsed=msgspec.structs.replace(_WHOLE.parsed, stream=True))


@pytest.fixture
def router() -> PoolRouter:
    return make_router(endpoint_dict("a"))


def begin(router: PoolRouter, *, at: float, policy: str | None = None) -> Lease:
    lease = router.begin(PROMPT, router.decide(PROMPT, now=at, policy=policy), now=at)
    router.unseen.begin(lease)
    return lease


def read(router: PoolRouter, *, running: float, at: float) -> None:
    router.observe("a", EngineSignals(running=running, waiting=0.0), now=at)


def test_its_prompt_counts_as_computed_at_the_predicted_time(router: PoolRouter) -> None:
    lease = begin(router, at=0.0)
    due = lease.decision.predicted.ttft_seconds
    ahead = router._known.table.cells["prefill_tokens"]
    before = int(ahead[0])

    router.decide(PROMPT, now=due + 0.01)

    assert (before > 0, int(ahead[0]), lease.is_open) == (True, 0, True)


@pytest.mark.parametrize("request_", [PROMPT, _WHOLE], ids=["streamed", "whole"])
def test_half_of_its_output_is_expected_still_when_its_prompt_is_computed(
    router: PoolRouter, request_: InferenceRequest
) -> None:
    lease = router.begin(request_, router.decide(request_, now=0.0), now=0.0)
    router.unseen.begin(lease)

    router.decide(PROMPT, now=lease.decision.predicted.ttft_seconds + 0.01)

    left = int(router._known.table.cells["remaining_tokens"][0])
    assert left == lease.output_tokens - lease.output_tokens // 2


def test_what_an_engine_has_not_any_more_has_ended(router: PoolRouter) -> None:
    leases = [begin(router, at=0.0) for _ in range(3)]
    read(router, running=1.0, at=1.0)

    assert router.unseen.ended() == {leases[0].destination: 2}


def test_what_began_after_the_reading_is_not_missed_in_it(router: PoolRouter) -> None:
    begin(router, at=0.0)
    read(router, running=1.0, at=1.0)
    late = begin(router, at=1.0)

    assert router.unseen.ended() == {late.destination: 0}


def test_an_engine_that_says_nothing_is_unknown(router: PoolRouter) -> None:
    lease = begin(router, at=0.0)

    assert router.unseen.ended() == {lease.destination: None}


def test_an_unseen_end_leaves_the_belief_in_the_cache_and_teaches_nothing(
    router: PoolRouter,
) -> None:
    lease = begin(router, at=0.0)
    speed = float(router._known.table.prefill_seconds_per_token[0])

    router.end(lease, now=5.0, outcome="unseen")
    again = router.decide(PROMPT, now=6.0)

    assert again.predicted.hit_tokens > 0
    assert float(router._known.table.prefill_seconds_per_token[0]) == speed
    assert router.leases_open == 0


def test_a_request_that_never_began_takes_its_belief_with_it(router: PoolRouter) -> None:
    lease = begin(router, at=0.0)

    router.end(lease, now=5.0, outcome="aborted")

    assert router.decide(PROMPT, now=6.0).predicted.hit_tokens == 0


def test_a_decode_end_is_not_asked_for_a_prompt_that_is_computed_elsewhere_yet() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    lease = begin(router, at=0.0, policy="round-robin")
    prefill = lease.prefill
    assert prefill is not None
    for name in ("p", "d"):
        router.observe(name, EngineSignals(running=0.0, waiting=0.0), now=0.11)

    assert router.unseen.ended() == {prefill: 1, lease.destination: 0}


def test_what_other_processes_sent_there_is_missed_as_well_and_each_ends_its_share(
    router: PoolRouter,
) -> None:
    lease, _ = (begin(router, at=0.0) for _ in range(2))
    # As peers tell it: six more requests, of theirs.
    router._known.table.cells["requests"][0] += 6
    read(router, running=8.0, at=1.0)
    nobody = router.unseen.ended()
    read(router, running=4.0, at=1.5)

    assert nobody == {lease.destination: 0}
    assert router.unseen.ended() == {lease.destination: 1}


def test_a_prefill_end_is_not_asked_for_a_prompt_that_should_be_computed() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    lease = begin(router, at=0.0, policy="round-robin")
    router.prefill_done(lease, now=0.5, prompt_tokens=6000, cached_tokens=0)

    assert list(router.unseen.ended()) == [lease.destination]
