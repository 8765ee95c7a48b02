"""Sheddable requests wait less, and go when others starve."""

import pytest

from routing.pool.waiting import victim
from tests.routing.pool.waits import QUEUE, asked, enter, fill, router_of, send


def test_a_sheddable_request_is_stopped_earlier_and_does_not_wait() -> None:
    router = router_of("a")
    send(router, asked())

    ordinary = router.decide(asked(), now=0.0).refusal
    sheddable = router.decide(asked(priority=-1), now=0.0).refusal
    offered = router.queue.offer(asked(priority=-1), body_bytes=1, now=0.0, stopped=sheddable)

    assert ordinary is None
    assert sheddable is not None
    assert offered.ticket is None
    assert offered.refusal is not None
    assert offered.refusal.dropped_reason == "rejected-saturated"


@pytest.mark.parametrize("is_wanted", [False, True])
def test_others_starve_when_the_gate_keeps_them_longer_than_it_allows(*, is_wanted: bool) -> None:
    router = router_of("a", admission=QUEUE | {"evict_sheddable": is_wanted})
    fill(router)
    before = router.queue.is_starving(now=0.0)
    enter(router)

    early, late = router.queue.is_starving(now=0.4), router.queue.is_starving(now=0.6)

    assert (before, early, late) == (False, False, is_wanted)


def test_others_starve_although_the_next_in_turn_came_just_now() -> None:
    router = router_of("a", admission=QUEUE | {"evict_sheddable": True})
    fill(router)
    enter(router, id="old")
    enter(router, now=0.55, id="urgent", arrived_at=0.55, slo_ttft_seconds=0.1)

    head = router.queue.order.head()

    assert head is not None
    assert head.request.id == "urgent"
    assert router.queue.is_starving(now=0.6)


def test_the_lowest_and_of_those_the_newest_is_evicted() -> None:
    running = [
        asked(id="a", priority=0, arrived_at=9.0),
        asked(id="b", priority=-1, arrived_at=8.0),
        asked(id="c", priority=-2, arrived_at=1.0),
        asked(id="d", priority=-2, arrived_at=2.0),
    ]

    chosen, nobody = victim(running), victim(running[:1])

    assert chosen is running[3]
    assert nobody is None
