"""The pool router from outside: which endpoint is chosen, and why."""

import pytest

from routing.pool.router import StaleDecisionError
from tests.routing.pool.builders import (
    crowd,
    endpoint_dict,
    make_document,
    make_request,
    make_router,
    serve,
)

POLICIES = ["random", "round-robin", "least-requests", "consort"]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_uses_all_of_several_equal_idle_endpoints(policy: str) -> None:
    router = make_router(*(endpoint_dict(name) for name in "abcd"))

    chosen = {
        router.decide(make_request(f"{turn} " * 900), now=0.0, policy=policy).destination
        for turn in range(60)
    }

    assert chosen == set("abcd")


def test_round_robin_takes_turns() -> None:
    router = make_router(*(endpoint_dict(name) for name in "abc"))

    chosen = [
        router.decide(make_request(), now=0.0, policy="round-robin").destination for _ in range(6)
    ]

    assert chosen == ["a", "b", "c", "a", "b", "c"]


def test_least_requests_follows_open_leases() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b"))
    request = make_request()

    chosen = []
    for _ in range(6):
        decision = router.decide(request, now=0.0, policy="least-requests")
        router.begin(request, decision, now=0.0)
        chosen.append(decision.destination)

    assert sorted(chosen) == ["a", "a", "a", "b", "b", "b"]


def test_the_second_equal_prompt_goes_where_the_first_is_cached() -> None:
    router = make_router(*(endpoint_dict(name) for name in "abcdefgh"))
    request = make_request("word " * 5000)
    first = router.decide(request, now=0.0)
    serve(router, request, now=0.0)

    second = router.decide(request, now=5.0)

    assert second.predicted.hit_tokens > 0.95 * request.parsed.prompt_tokens
    assert second.reason == "cheapest, with a cache hit"
    assert first.predicted.hit_tokens == 0


def test_a_sibling_follows_a_prompt_that_is_still_being_computed() -> None:
    router = make_router(*(endpoint_dict(name) for name in "abcdefgh"))
    request = make_request("word " * 5000)
    first = router.decide(request, now=0.0)
    router.begin(request, first, now=0.0)

    sibling = router.decide(request, now=0.01)

    assert sibling.destination == first.destination


def test_a_prompt_that_failed_before_its_first_token_is_not_believed_cached() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b"))
    request = make_request("word " * 5000)
    lease = router.begin(request, router.decide(request, now=0.0), now=0.0)

    router.end(lease, now=1.0, outcome="error")

    assert router.decide(request, now=2.0).predicted.hit_tokens == 0


def test_a_hot_prefix_gets_a_second_home_when_its_first_is_crowded() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b"))
    request = make_request("word " * 5000)
    home = serve(router, request, now=0.0)
    for _ in range(200):
        decision = router.decide(request, now=1.0)
        lease = router.begin(request, decision, now=1.0)
        router.first_token(lease, now=1.0)
        if decision.destination != home:
            break

    assert decision.destination != home


def test_a_faster_class_takes_more_requests() -> None:
    router = make_router(
        endpoint_dict("quick"), endpoint_dict("tardy", speed_class="slow"), endpoint_dict("quick2")
    )

    chosen = []
    for turn in range(40):
        request = make_request(f"{turn} unlike any other " * 200)
        decision = router.decide(request, now=0.0)
        router.first_token(router.begin(request, decision, now=0.0), now=0.0)
        chosen.append(decision.destination)

    # Its steps take three times as long; a batch that grows makes the quick ones slower, too.
    assert chosen.count("tardy") <= 0.7 * min(chosen.count("quick"), chosen.count("quick2"))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_long_uncached_prompt_for_a_busy_decode_endpoint_is_computed_elsewhere(
    policy: str,
) -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    crowd(router, 20)

    decision = router.decide(make_request("word " * 6000), now=1.0, policy=policy)

    assert (decision.destination, decision.prefill) == ("d", "p")


def test_a_short_prompt_is_computed_where_it_is_decoded() -> None:
    router = make_router(endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode"))
    crowd(router, 20)

    decision = router.decide(make_request("short"), now=1.0)

    assert (decision.destination, decision.prefill) == ("d", None)


def test_fallbacks_are_the_next_best_and_never_the_destination() -> None:
    router = make_router(*(endpoint_dict(name) for name in "abcde"))

    decision = router.decide(make_request(), now=0.0)

    assert len(decision.fallbacks) == 2
    assert decision.destination not in decision.fallbacks
    assert decision.runner_up == decision.fallbacks[0]


def test_equal_seeds_decide_equally() -> None:
    def choices() -> list[str | None]:
        router = make_router(*(endpoint_dict(name) for name in "abcd"))
        return [router.decide(make_request(), now=0.0).destination for _ in range(30)]

    assert choices() == choices()


def test_money_moves_requests_only_when_it_has_a_weight() -> None:
    endpoints = (
        endpoint_dict("dear", price_per_hour="9.00"),
        endpoint_dict("cheap", price_per_hour="1.00"),
    )
    parameters = {"money_weight": 1e6}
    without = make_router(*endpoints)
    weighted = make_router(*endpoints, policy={"name": "consort", "parameters": parameters})

    free = {without.decide(make_request(), now=0.0).destination for _ in range(30)}
    paid = {weighted.decide(make_request(), now=0.0).destination for _ in range(30)}

    assert free == {"dear", "cheap"}
    assert paid == {"cheap"}


def test_a_fresh_endpoint_that_ramps_up_takes_its_share_slowly() -> None:
    router = make_router(endpoint_dict("a"))
    router.apply(
        make_document(endpoint_dict("a"), endpoint_dict("b", ramp_seconds=60), version=2), now=100.0
    )

    def share(now: float) -> float:
        leases, chosen = [], []
        for turn in range(40):
            request = make_request(f"{now} {turn} " * 100)
            decision = router.decide(request, now=now)
            leases.append(router.begin(request, decision, now=now))
            chosen.append(decision.destination)
        for lease in leases:
            router.first_token(lease, now=now + 0.1)
            router.end(lease, now=now + 0.1, outcome="aborted")
        return chosen.count("b") / len(chosen)

    early, late = share(101.0), share(200.0)

    assert early < 0.35
    assert late == pytest.approx(0.5, abs=0.05)


def test_a_decision_about_a_removed_endpoint_cannot_be_begun() -> None:
    router = make_router(endpoint_dict("a"))
    request = make_request()
    decision = router.decide(request, now=0.0)
    router.apply(make_document(endpoint_dict("b"), version=2), now=1.0)

    with pytest.raises(StaleDecisionError, match="'a' is not in document version 2"):
        router.begin(request, decision, now=1.0)
