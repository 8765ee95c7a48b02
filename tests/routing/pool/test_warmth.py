"""Decode endpoints that wait for their first ordinary prompt take part in no pair."""

import pytest

from routing.core.signals import EngineSignals
from routing.pool.router import PoolRouter
from tests.routing.pool.builders import endpoint_dict, make_document, make_request, make_router

LONG = "word " * 6000


def pool(**rules: object) -> PoolRouter:
    return make_router(
        endpoint_dict("p", role="prefill"),
        endpoint_dict("d", role="decode"),
        disaggregation={"minimum_uncached_tokens": 1} | rules,
    )


def prefill_of(router: PoolRouter) -> str | None:
    return router.decide(make_request(LONG), now=1.0, policy="random").prefill


def test_without_a_driver_that_warms_every_endpoint_is_warm() -> None:
    router = pool()

    assert router.warmth.cold() == ()
    assert prefill_of(router) == "p"


def test_a_cold_decode_endpoint_computes_its_prompts_itself_until_it_is_warm() -> None:
    router = pool()

    router.warmth.begin()
    cold, before = router.warmth.cold(), prefill_of(router)
    router.warmth.warmed("d", "1")

    assert (cold, before) == (("d",), None)
    assert (router.warmth.cold(), prefill_of(router)) == ((), "p")


def test_a_pool_may_do_without() -> None:
    router = pool(warm_up=False)

    router.warmth.begin()

    assert router.warmth.cold() == ()


def test_another_life_of_an_endpoint_is_cold_again() -> None:
    router = pool()
    router.warmth.begin()
    router.warmth.warmed("d", "1")
    later = (endpoint_dict("p", role="prefill"), endpoint_dict("d", role="decode", instance="2"))

    router.apply(make_document(*later, version=2), now=2.0)
    router.warmth.warmed("d", "1")

    assert router.warmth.cold() == ("d",)


def test_whoever_takes_connections_again_is_a_fresh_process() -> None:
    router = pool()
    router.warmth.begin()
    router.warmth.warmed("d", "1")

    router.warmth.out_of_reach("d")
    router.warmth.out_of_reach("p")
    router.warmth.out_of_reach("unknown")

    assert router.warmth.cold() == ("d",)
    assert prefill_of(router) is None


def test_what_is_warm_stays_so_with_another_document() -> None:
    router = pool()
    router.warmth.begin()
    router.warmth.warmed("d", "1")
    later = (endpoint_dict("d", role="decode"), endpoint_dict("p", role="prefill"))

    router.apply(make_document(*later, version=2), now=2.0)

    assert router.warmth.cold() == ()


@pytest.mark.parametrize(("later", "cold"), [(100.0, ()), (200.0, ("d",))])
def test_a_process_that_started_anew_is_cold(later: float, cold: tuple[str, ...]) -> None:
    router = pool()
    router.warmth.begin()
    router.warmth.warmed("d", "1")

    for moment, started in ((1.0, 100.0), (2.0, later)):
        router.observe("d", EngineSignals(running=0, process_start=started), now=moment)

    assert router.warmth.cold() == cold
