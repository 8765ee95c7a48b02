"""The queue: strict bands with a trickle, bounds, time limits; nobody is lost or counted twice."""

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tests.routing.pool.builders import endpoint_dict, make_document
from tests.routing.pool.queues import REQUEST, asked, enter, queue_of, serve


def test_higher_bands_are_first() -> None:
    queue = queue_of()
    for priority in (0, 5, 1, 5):
        enter(queue, priority=priority)

    order = [serve(queue).request.priority for _ in range(4)]

    assert order == [5, 5, 1, 0]


@pytest.mark.lesson("T04")
@pytest.mark.parametrize(
    ("admission", "least", "most"),
    [
        pytest.param({}, 0.015, 0.025, id="two-percent-by-default"),
        pytest.param({"trickle_share": 0.1}, 0.08, 0.12, id="of-the-pool"),
        pytest.param(
            {"bands": [{"priority": 0, "trickle_share": 0.05}]}, 0.04, 0.06, id="of-the-band"
        ),
        pytest.param({"trickle_share": 0.0}, 0.0, 0.0, id="none-if-nobody-wants-it"),
    ],
)
def test_batch_traffic_trickles_through_under_load(
    admission: dict[str, Any], least: float, most: float
) -> None:
    queue, got = queue_of(**admission), Counter[int]()
    for _ in range(200):
        enter(queue, priority=0)

    for _ in range(1000):
        enter(queue, priority=10)
        got[serve(queue).request.priority] += 1

    assert least <= got[0] / got[10] <= most


def test_every_lower_band_has_its_own_trickle() -> None:
    queue, got = queue_of(trickle_share=0.05), Counter[int]()
    for _ in range(60):
        enter(queue, priority=0)
        enter(queue, priority=1)

    for _ in range(1000):
        enter(queue, priority=10)
        got[serve(queue).request.priority] += 1

    assert 30 <= got[0] <= 60
    assert 30 <= got[1] <= 60


def test_a_trickle_is_not_saved_up_beyond_one_request() -> None:
    queue = queue_of(trickle_share=0.5)
    enter(queue, priority=0, tokens=100)
    for _ in range(5):
        enter(queue, priority=0, tokens=100)

    queue.passed(10, 100_000)
    for _ in range(3):
        enter(queue, priority=10)
    order = [serve(queue).request.priority for _ in range(3)]

    assert order == [0, 10, 10]


@pytest.mark.parametrize(
    ("admission", "full"),
    [
        pytest.param({"queue_requests": 3}, "queue_requests", id="requests"),
        pytest.param({"queue_bytes": 35}, "queue_bytes", id="bytes"),
        pytest.param({"bands": [{"priority": 0, "queue_requests": 3}]}, "band", id="band"),
    ],
)
def test_a_full_queue_says_which_bound_it_hit(admission: dict[str, Any], full: str) -> None:
    queue = queue_of(**admission)
    for _ in range(3):
        enter(queue)

    offer = queue.offer(asked(), gate="g", tokens=1, body_bytes=10, now=0.0)

    assert (offer.ticket, offer.full, len(queue)) == (None, full, 3)


def test_sheddable_requests_wait_only_where_their_band_says_so() -> None:
    closed = queue_of()
    open_ = queue_of(bands=[{"priority": -1, "queue_requests": 5}])

    offer = closed.offer(asked(priority=-1), gate="g", tokens=1, body_bytes=1, now=0.0)

    assert offer.full == "sheddable"
    assert enter(open_, priority=-1).state == "waiting"


def test_a_full_queue_sends_the_newest_of_the_lowest_sheddable_away_first() -> None:
    bands = [{"priority": priority, "queue_requests": 5} for priority in (-2, -1)]
    queue = queue_of(queue_requests=4, bands=bands)
    first, second = enter(queue, priority=-1), enter(queue, priority=-2)
    third = enter(queue, priority=-2)
    enter(queue, priority=0)

    offers = [
        queue.offer(asked(priority=1), gate="g", tokens=1, body_bytes=1, now=0.0) for _ in range(4)
    ]

    assert [offer.displaced for offer in offers] == [(third,), (second,), (first,), ()]
    assert [offer.full for offer in offers] == ["", "", "", "queue_requests"]
    assert {first.state, second.state, third.state} == {"displaced"}


def test_a_sheddable_request_displaces_only_lower_ones() -> None:
    bands = [{"priority": priority, "queue_requests": 5} for priority in (-2, -1)]
    queue = queue_of(queue_requests=1, bands=bands)
    low = enter(queue, priority=-2)

    higher = queue.offer(asked(priority=-1), gate="g", tokens=1, body_bytes=1, now=0.0)
    equal = queue.offer(asked(priority=-1), gate="g", tokens=1, body_bytes=1, now=0.0)

    assert higher.displaced == (low,)
    assert equal.full == "queue_requests"


def test_nobody_is_displaced_for_a_request_that_does_not_fit_anyway() -> None:
    queue = queue_of(queue_bytes=100, bands=[{"priority": -1, "queue_requests": 5}])
    enter(queue, priority=-1, body_bytes=50)

    offer = queue.offer(asked(), gate="g", tokens=1, body_bytes=101, now=0.0)

    assert (offer.full, offer.displaced, len(queue)) == ("queue_bytes", (), 1)


@pytest.mark.lesson("T03")
@pytest.mark.parametrize(
    ("pool", "band", "own", "expected"),
    [
        pytest.param(30.0, None, None, 30.0, id="pool"),
        pytest.param(30.0, 5.0, None, 5.0, id="band-shortens"),
        pytest.param(30.0, 60.0, None, 30.0, id="band-cannot-lengthen"),
        pytest.param(30.0, 5.0, 2.0, 2.0, id="request-shortens"),
        pytest.param(30.0, 5.0, 600.0, 5.0, id="request-cannot-lengthen"),
        pytest.param(30.0, None, 0.0, 0.0, id="a-request-that-does-not-want-to-wait"),
    ],
)
def test_the_shortest_time_limit_holds(
    pool: float, band: float | None, own: float | None, expected: float
) -> None:
    bands = [] if band is None else [{"priority": 3, "queue_seconds": band}]
    queue = queue_of(queue_seconds=pool, bands=bands)

    ticket = enter(queue, now=100.0, priority=3, queue_seconds=own)

    assert ticket.expires_at == 100.0 + expected
    assert queue.next_expiry() == 100.0 + expected
    assert queue.expire(now=99.9 + expected) == []
    assert queue.expire(now=100.0 + expected) == [ticket]
    assert (ticket.state, len(queue)) == ("expired", 0)


@settings(deadline=None)
@given(st.floats(0.1, 1000), st.floats(0, 2000), st.floats(0, 2000))
def test_a_request_that_asks_for_less_never_waits_longer(
    pool: float, shorter: float, longer: float
) -> None:
    shorter, longer = sorted((shorter, longer))
    queue = queue_of(queue_seconds=pool)

    waits = [queue.longest_wait(asked(queue_seconds=each)) for each in (shorter, longer, None)]

    assert waits == sorted(waits)
    assert max(waits) <= pool


def test_the_first_token_that_is_due_first_is_first_and_the_wait_counts_as_a_target() -> None:
    queue = queue_of(queue_seconds=10)
    patient = enter(queue)
    hurried = enter(queue, slo_ttft_seconds=5.0)
    short = enter(queue, queue_seconds=1.0)

    order = [serve(queue) for _ in range(3)]

    assert order == [short, hurried, patient]


def test_shares_of_tenants_come_from_the_document() -> None:
    queue = queue_of(tenants=[{"tenant": "b", "share": 3}])
    got = Counter[str]()
    for _ in range(100):
        enter(queue, tenant="a")
        enter(queue, tenant="b")

    for _ in range(80):
        got[serve(queue).request.tenant] += 1

    assert 58 <= got["b"] <= 62


def test_the_time_to_come_back_follows_the_rate_at_which_requests_get_through() -> None:
    queue = queue_of()
    for _ in range(100):
        enter(queue, tokens=1000)

    before = queue.seconds_until_turn(0, now=0.0)
    for step in range(60):
        serve(queue, now=float(step))
    after = queue.seconds_until_turn(0, now=60.0)

    assert before is None
    assert after == pytest.approx(40, rel=0.15)
    assert queue.seconds_until_turn(5, now=60.0) == 0


def test_a_newcomer_does_not_overtake_who_waits_for_the_same_endpoints() -> None:
    queue = queue_of()
    enter(queue, priority=1)

    assert queue.must_wait(0, "g")
    assert queue.must_wait(1, "g")
    assert not queue.must_wait(2, "g")
    assert not queue.must_wait(0, "other")


@pytest.mark.lesson("N01")
def test_invented_priorities_leave_nothing_behind() -> None:
    queue = queue_of()

    for priority in range(3000):
        enter(queue, priority=priority)
        ticket = enter(queue, priority=priority)
        queue.cancel(ticket)
        serve(queue)
        queue.forget(REQUEST)

    assert len(queue) == queue.waiting_bytes == 0
    assert len(queue._bands) <= 2
    assert len(queue._credit) == 0
    assert len(queue._expiries) <= 300


def test_a_document_with_smaller_bounds_sends_nobody_away() -> None:
    queue = queue_of()
    for _ in range(5):
        enter(queue)

    queue.apply(make_document(endpoint_dict("a"), admission={"queue_requests": 2}))
    offer = queue.offer(asked(), gate="g", tokens=1, body_bytes=1, now=0.0)

    assert len(queue) == 5
    assert offer.full == "queue_requests"


def test_the_state_for_operators_counts_and_names_nobody() -> None:
    queue = queue_of()
    enter(queue, priority=2, now=1.0)
    enter(queue, priority=0, now=3.0)
    serve(queue, now=3.5)

    state = queue.describe(now=4.0)

    assert state["bands"] == {"0": {"requests": 1, "oldest_seconds": 1.0}}
    assert state["totals"] == {"released": 1}
