"""Where hot prefixes live."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from routing.core.table import EndpointTable, Instance
from routing.pool.homes import Typical, fair_shares
from routing.pool.router import PoolRouter
from tests.routing.pool.builders import SPEED, endpoint_dict, make_document, make_request

FAST = SPEED
SLOW = SPEED | {
    "step_seconds": 12e-3,
    "step_seconds_per_sequence": 2e-4,
    "step_seconds_per_context_token": 16e-8,
}


def make_table(*endpoints: dict[str, Any]) -> EndpointTable:
    document = make_document(*endpoints, speed_classes={"fast": FAST, "slow": SLOW})
    instances = [Instance(spec, row, row) for row, spec in enumerate(document.endpoints)]
    return EndpointTable(document, instances, now=0.0)


def typical(**values: float) -> Typical:
    return Typical(**({"prompt": 4000, "output": 300, "work": 500, "count": 1} | values))


def shares(table: EndpointTable, rate: float, **values: float) -> list[float]:
    usable = np.ones(len(table), dtype=np.bool_)
    return fair_shares(table, usable, typical(**values), rate=rate)[0].tolist()


@pytest.mark.lesson("W05")
@pytest.mark.parametrize("rate", [0.1, 10.0, 1000.0])
def test_a_faster_endpoint_carries_more_at_any_load(rate: float) -> None:
    table = make_table(
        endpoint_dict("a"), endpoint_dict("b"), endpoint_dict("c", speed_class="slow")
    )

    first, second, slow = shares(table, rate)

    assert first == pytest.approx(second)
    assert slow < 0.6 * first
    assert first + second + slow == pytest.approx(1.0)


def test_one_more_request_waits_as_long_on_every_endpoint() -> None:
    table = make_table(endpoint_dict("a"), endpoint_dict("b", speed_class="slow"))
    usual = typical()
    found = np.array(shares(table, rate=0.0))
    context, output = 4150, 300
    per_token = (
        table.prefill_seconds_per_token + table.prefill_seconds_per_token_and_context * 4000 * 0.75
    )
    fixed = output * table.step_seconds
    growing = usual.work * per_token + output * (
        table.step_seconds_per_sequence + table.step_seconds_per_context_token * context
    )
    # The pool is taken to be half full; find the rate that belongs to these shares.
    rate = found * 0.5 * float((1 / growing).sum())

    added = fixed / (1 - rate * growing) ** 2

    assert added[0] == pytest.approx(added[1], rel=0.1)


def test_little_memory_limits_what_an_endpoint_carries() -> None:
    table = make_table(endpoint_dict("a"), endpoint_dict("b", kv_capacity_tokens=4000))

    large, small = shares(table, rate=1000.0)

    assert small < large / 3


@pytest.mark.lesson("W25")
def test_nobody_usable_and_a_single_one() -> None:
    table = make_table(endpoint_dict("a"))

    nobody, utilisation = fair_shares(table, np.array([False]), typical(), rate=5.0)

    assert nobody.tolist() == [0.0]
    assert utilisation == 0.0
    assert shares(table, rate=5.0) == [1.0]


class Pool:
    """A router with fast endpoints that streams for a while."""

    def __init__(
        self, count: int = 4, *, endpoints: list[dict[str, Any]] | None = None, **overrides: Any
    ) -> None:
        chosen = endpoints or [endpoint_dict(f"e{number}") for number in range(count)]
        document = make_document(*chosen, **overrides)
        self.router = PoolRouter(document, seed=7, now=0.0)
        self.now = 0.0

    def send(self, group: str, turn: int, *, seconds: float = 0.02) -> str:
        """One whole request; the time goes on by `seconds`."""
        text = f"{group} says {'so ' * 1500} question {turn} " + f"{turn} " * 60
        request = make_request(text, id=f"{group}-{turn}")
        decision = self.router.decide(request, now=self.now)
        lease = self.router.begin(request, decision, now=self.now)
        # The engines do what is predicted: nobody looks faster than its sisters.
        first = self.now + decision.predicted.ttft_seconds
        self.router.first_token(lease, now=first)
        self.router.end(
            lease, now=first + 59 * decision.predicted.tpot_seconds, outcome="ok",
            prompt_tokens=request.parsed.prompt_tokens,
            cached_tokens=decision.predicted.hit_tokens, completion_tokens=60,
        )  # fmt: skip
        self.now += seconds
        assert decision.destination is not None
        return decision.destination

    def homes(self) -> dict[str, int]:
        state = self.router.snapshot(now=self.now)
        return {row["id"]: row["homes"]["groups"] for row in state["endpoints"]}


@pytest.mark.lesson("W13")
def test_groups_that_are_first_seen_spread_over_the_endpoints() -> None:
    pool = Pool()

    for turn in range(20):
        for group in range(16):
            pool.send(f"group {group:02d}", turn)

    homes = pool.homes()
    assert sum(homes.values()) >= 16
    assert min(homes.values()) >= 2


@pytest.mark.lesson("W12")
def test_a_prefix_that_all_share_gets_as_many_homes_as_it_needs_before_a_queue_appears() -> None:
    pool = Pool()

    sent = Counter(pool.send("everybody", turn) for turn in range(400))

    assert min(pool.homes().values()) == 1
    assert len(sent) == 4


def test_in_an_idle_pool_repeated_prompts_stay_where_they_are_cached() -> None:
    pool = Pool(3)

    first = pool.send("alone", 0, seconds=5.0)
    alone = {pool.send("alone", 0, seconds=5.0) for _ in range(30)}
    other = pool.send("other", 0, seconds=5.0)
    others = {pool.send("other", 0, seconds=5.0) for _ in range(30)}

    assert alone == {first}
    assert others == {other}


def test_in_a_quiet_pool_a_prefix_that_all_share_stays_at_one_place() -> None:
    pool = Pool()

    sent = {pool.send("everybody", turn, seconds=1.0) for turn in range(60)}

    assert len(sent) == 1
    assert sum(pool.homes().values()) < 4


def test_where_memory_is_short_prefixes_are_spread_evenly() -> None:
    tight = [endpoint_dict(f"e{number}", kv_capacity_tokens=24_000) for number in range(4)]
    pool = Pool(endpoints=tight)

    for turn in range(3):
        for group in range(32):
            pool.send(f"group {group:02d}", turn, seconds=0.1)

    assert set(pool.homes().values()) <= {7, 8, 9}


def test_a_group_stays_at_its_home_while_nothing_is_wrong() -> None:
    pool = Pool()
    for turn in range(10):
        for group in range(12):
            pool.send(f"group {group:02d}", turn)

    places = {
        group: {pool.send(f"group {group:02d}", turn) for turn in range(100, 105)}
        for group in range(12)
    }

    assert all(len(found) == 1 for found in places.values())


@pytest.mark.lesson("F03")
def test_a_dead_endpoint_is_nobodys_home_at_once() -> None:
    pool = Pool()
    for turn in range(10):
        for group in range(8):
            pool.send(f"group {group:02d}", turn)
    lost = pool.send("group 03", 50)
    left = [name for name in ("e0", "e1", "e2", "e3") if name != lost]

    pool.router.apply(
        make_document(*(endpoint_dict(name) for name in left), version=2), now=pool.now
    )

    assert pool.send("group 03", 51) in left
    for turn in range(52, 60):
        pool.send("group 03", turn, seconds=1.0)
    assert set(pool.homes()) == set(left)


def test_an_open_breaker_moves_a_group_away() -> None:
    pool = Pool()
    for turn in range(10):
        for group in range(8):
            pool.send(f"group {group:02d}", turn)
    broken = pool.send("group 03", 50)
    for _ in range(20):
        pool.router.failed(broken, "connect", now=pool.now)

    assert pool.send("group 03", 51) != broken


def test_routers_with_the_same_traffic_place_alike() -> None:
    first, second = Pool(), Pool()

    for turn in range(12):
        for group in range(12):
            first.send(f"group {group:02d}", turn)
            second.send(f"group {group:02d}", turn)

    assert first.homes() == second.homes()


def test_other_block_keys_forget_all_homes() -> None:
    pool = Pool()
    for turn in range(10):
        pool.send("group", turn, seconds=1.0)

    names = [endpoint_dict(f"e{number}") for number in range(4)]
    other = make_document(*names, version=2, prompt_identity={"chunk_bytes": 512})
    pool.router.apply(other, now=pool.now)

    assert set(pool.homes().values()) == {0}
