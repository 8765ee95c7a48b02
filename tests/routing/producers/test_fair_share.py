"""Who is next in a band: shares of tokens between tenants, turns of flows, then deadlines."""

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from routing.producers.fair_share import FairShare, Ticket
from tests.routing.pool.builders import make_request

NOBODY = frozenset[object]()
REQUEST = make_request("x")


def ticket(number: int, *, tenant: str = "a", tokens: int = 100, **values: object) -> Ticket:
    fairness = values.pop("fairness", None)
    fields: dict[str, object] = {
        "gate": "g",
        "tokens": tokens,
        "body_bytes": 10,
        "offered_at": 0.0,
        "deadline": 100.0,
        "expires_at": 100.0,
        "number": number,
    }
    request = msgspec.structs.replace(REQUEST, tenant=tenant, fairness=fairness)
    return Ticket(request=request, **(fields | values))


def serve(band: FairShare, *, share: float = 1.0, closed: frozenset[object] = NOBODY) -> Ticket:
    head = band.head(closed)
    assert head is not None
    head.state = "released"
    band.served(head, share=share)
    return head


def test_inside_a_tenant_the_earliest_deadline_is_first() -> None:
    band = FairShare()
    for number, deadline in enumerate([30.0, 10.0, 20.0, 10.0]):
        band.add(ticket(number, deadline=deadline))

    order = [serve(band).number for _ in range(4)]

    assert order == [1, 3, 2, 0]


def test_a_tenant_with_a_long_queue_does_not_hold_up_another() -> None:
    band = FairShare()
    for number in range(50):
        band.add(ticket(number, tenant="many"))
    band.add(ticket(99, tenant="few"))

    order = [serve(band).request.tenant for _ in range(3)]

    assert "few" in order[:2]


@pytest.mark.parametrize("shares", [(1.0, 1.0), (1.0, 3.0), (5.0, 2.0)])
@settings(deadline=None, max_examples=20)
@given(sizes=st.lists(st.integers(1, 500), min_size=2, max_size=20))
def test_under_backlog_tokens_relate_as_shares(
    shares: tuple[float, float], sizes: list[int]
) -> None:
    band, got, number = FairShare(), {"a": 0, "b": 0}, 0
    of = dict(zip("ab", shares, strict=True))

    while min(got.values()) < 20_000:
        for tenant in "ab":
            while sum(each.request.tenant == tenant for each in band) < 3:
                number += 1
                band.add(ticket(number, tenant=tenant, tokens=sizes[number % len(sizes)]))
        head = band.head(NOBODY)
        assert head is not None
        tenant = head.request.tenant
        got[tenant] += head.tokens
        head.state = "released"
        band.served(head, share=of[tenant])

    assert abs(got["a"] / shares[0] - got["b"] / shares[1]) <= 2 * max(sizes)


def test_what_was_really_used_counts_in_the_end() -> None:
    band = FairShare()
    for number in range(10):
        band.add(ticket(number, tenant="a"))
        band.add(ticket(100 + number, tenant="b"))

    first = serve(band)
    band.settle(first.request.tenant, 400, share=1.0)
    following = [serve(band).request.tenant for _ in range(5)]

    assert following == ["b" if first.request.tenant == "a" else "a"] * 5


def test_a_tenant_that_sends_one_by_one_gains_nothing_by_it() -> None:
    band, got = FairShare(), {"one": 0, "many": 0}
    for number in range(200):
        band.add(ticket(number, tenant="many"))

    for number in range(200, 300):
        if not any(each.request.tenant == "one" for each in band):
            band.add(ticket(number, tenant="one"))
        head = serve(band)
        got[head.request.tenant] += 1

    assert abs(got["one"] - got["many"]) <= 2


def test_a_tenant_that_was_away_saved_nothing_up() -> None:
    band = FairShare()
    for number in range(100):
        band.add(ticket(number, tenant="busy"))
    for _ in range(50):
        serve(band)
    for number in range(100, 150):
        band.add(ticket(number, tenant="back"))

    order = [serve(band).request.tenant for _ in range(20)]

    assert 8 <= order.count("busy") <= 12


def test_flows_of_a_tenant_take_turns() -> None:
    band = FairShare()
    for number in range(20):
        band.add(ticket(number, fairness="long"))
    band.add(ticket(50, fairness="other", deadline=1000.0))
    band.add(ticket(51, fairness="other", deadline=1000.0))

    order = [serve(band).request.fairness for _ in range(4)]

    assert sorted(order) == ["long", "long", "other", "other"]


def test_requests_behind_a_closed_gate_hold_up_nobody_and_save_up_nothing() -> None:
    band = FairShare()
    for number in range(20):
        band.add(ticket(number, tenant="shut", gate="closed"))
        band.add(ticket(100 + number, tenant="shut", gate="open"))
        band.add(ticket(200 + number, tenant="free", gate="open"))

    passed = [serve(band, closed=frozenset({"closed"})) for _ in range(20)]
    after = [serve(band).request.tenant for _ in range(10)]

    assert {each.gate for each in passed} == {"open"}
    assert band.head(frozenset({"closed", "open"})) is None
    assert 4 <= after.count("shut") <= 6


def test_it_is_known_whether_somebody_waits_for_the_same_endpoints() -> None:
    band = FairShare()
    first = ticket(1, gate="kr")
    band.add(first)

    before = band.waits_at("kr"), band.waits_at("us")
    first.state = "cancelled"
    band.left(first)

    assert before == (True, False)
    assert not band.waits_at("kr")
    assert len(band) == band.tokens == 0


class Asked(frozenset[str]):
    """Closed gates that note which gates were asked about."""

    def __contains__(self, gate: object) -> bool:
        asked.append(gate)
        return super().__contains__(gate)


asked: list[object] = []


def test_a_search_asks_for_each_gate_once_however_many_tenants_wait() -> None:
    band = FairShare()
    for number in range(2000):
        band.add(ticket(number, tenant=f"t{number % 100}", gate=f"g{number % 20}"))

    asked.clear()
    head = band.head(Asked({"g0", "g1"}))

    assert head is not None
    assert sorted(asked, key=str) == sorted(f"g{number}" for number in range(20))


def test_all_may_wait_at_other_gates_from_now_on_and_keep_their_turns() -> None:
    band, twin = FairShare(), FairShare()
    for each in (band, twin):
        for number in range(60):
            each.add(
                ticket(
                    number, tenant="abc"[number % 3], fairness="xy"[number % 2],
                    tokens=50 + number, deadline=float(number * 7 % 60), gate=number % 4,
                )
            )  # fmt: skip
        for _ in range(5):
            serve(each)
        gone = next(iter(each))
        gone.state = "cancelled"
        each.left(gone)

    band.regate(lambda ticket: "even" if ticket.number % 2 == 0 else "odd")

    assert (band.waits_at("even"), band.waits_at(0)) == (True, False)
    assert [serve(band).number for _ in range(54)] == [serve(twin).number for _ in range(54)]
    assert len(band) == 0


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "serve", "leave", "shut", "move"]),
            st.sampled_from("abc"),
            st.sampled_from([None, "x", "y"]),
            st.sampled_from("gh"),
            st.integers(1, 300),
        ),
        max_size=120,
    )
)
def test_the_head_is_always_one_that_waits_at_an_open_gate_and_nobody_is_lost(
    steps: list[tuple[str, str, str | None, str, int]],
) -> None:
    band, waiting, number = FairShare(), dict[int, Ticket](), 0

    for action, tenant, flow, gate, size in steps:
        closed = frozenset(gate) if action == "shut" else NOBODY
        head = band.head(closed)
        open_ones = [each for each in waiting.values() if each.gate not in closed]
        assert (head is None) == (not open_ones)
        assert head is None or head in open_ones
        if action == "add":
            number += 1
            waiting[number] = ticket(
                number, tenant=tenant, tokens=size, fairness=flow, gate=gate, deadline=float(size)
            )
            band.add(waiting[number])
        elif action == "leave" and waiting:
            left = waiting.pop(sorted(waiting)[size % len(waiting)])
            left.state = "cancelled"
            band.left(left)
        elif action == "move" and waiting:
            moved = waiting[sorted(waiting)[size % len(waiting)]]
            band.move(moved, gate)
            assert moved.gate == gate
        elif action == "serve" and head is not None:
            del waiting[serve(band).number]
    while waiting:
        del waiting[serve(band).number]

    assert len(band) == band.tokens == 0
    assert band.head(NOBODY) is None


@pytest.mark.lesson("N01")
def test_requests_that_leave_before_their_turn_take_no_memory() -> None:
    band = FairShare()
    stays = ticket(0, deadline=0.0)
    band.add(stays)

    for number in range(1, 2000):
        leaves = ticket(number, tenant="a", fairness=f"f{number}", deadline=float(number))
        band.add(leaves)
        leaves.state = "cancelled"
        band.left(leaves)
        other = ticket(number + 10_000, tenant=f"t{number}")
        band.add(other)
        other.state = "cancelled"
        band.left(other)

    line = band._lines["a"]
    assert len(band._lines) == 1
    assert sum(len(lane) for lane in line._lanes.values()) < 100
    assert sum(len(order) for order in line._order.values()) < 100
    assert len(line.turns) == 1
    assert len(band._finished) <= 4096


@pytest.mark.parametrize("real", [1, 20, 100, 300])
def test_shares_are_those_of_the_tokens_used_however_wrong_the_expectation_is(real: int) -> None:
    band, got, running, number = FairShare(), {"a": 0, "b": 0}, list[Ticket](), 0
    of = {"a": 3.0, "b": 1.0}

    for _ in range(2000):
        for tenant in "ab":
            while sum(each.request.tenant == tenant for each in band) < 5:
                number += 1
                band.add(ticket(number, tenant=tenant))
        head = band.head(NOBODY)
        assert head is not None
        tenant = head.request.tenant
        got[tenant] += 1
        head.state = "released"
        band.served(head, share=of[tenant])
        running.append(head)
        if len(running) > 8:
            done = running.pop(0)
            band.settle(done.request.tenant, real - done.tokens, share=of[done.request.tenant])

    assert 2.8 <= got["a"] / got["b"] <= 3.2


def test_a_newcomer_is_not_held_up_by_what_others_were_expected_to_use() -> None:
    band, number = FairShare(), 0
    for number in range(400):
        band.add(ticket(number, tenant="old", tokens=1000))
    for _ in range(200):
        first = serve(band)
        band.settle(first.request.tenant, 5 - first.tokens, share=1.0)
    band.add(ticket(900, tenant="new", tokens=1000))

    order = [serve(band).request.tenant for _ in range(2)]

    assert "new" in order
