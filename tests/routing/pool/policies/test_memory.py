"""What a policy remembers: blocks, open work, cold requests, sessions; and that it ends."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routing.core.decision import Decision, Predicted
from routing.core.lease import Lease
from routing.core.request import InferenceRequest
from routing.core.table import EndpointTable
from routing.pool.policies import memory as memories
from routing.pool.policies.memory import (
    APPROXIMATE,
    PRECISE,
    ApproximateProducer,
    PolicyMemory,
    blocks_of,
)
from tests.routing.contexts import make_context, make_table
from tests.routing.pool.builders import make_request

DECISION = Decision(
    id="d", request_id="r", policy="p", pool="chat", document_version=1, decided_at=0.0,
    predicted=Predicted(),
)  # fmt: skip


def lease_of(
    table: EndpointTable, row: int, request: InferenceRequest, *, number: int = 1, **overrides: Any
) -> Lease:
    prefill = overrides.pop("prefill", None)
    return Lease(
        number=number,
        request=request,
        decision=DECISION,
        destination=table.instances[row],
        prefill=None if prefill is None else table.instances[prefill],
        began_at=0.0,
        work_tokens=overrides.pop("work", 100),
        output_tokens=1,
    )


def test_keys_shorter_than_64_tokens_are_joined() -> None:
    request = make_request("hello " * 1000)
    parsed = request.parsed

    keys, tokens = blocks_of(request, ApproximateProducer(block_size_tokens=256))
    same, _ = blocks_of(request, ApproximateProducer())

    assert keys == parsed.block_keys[3::4].tolist()
    assert tokens == pytest.approx(256)
    assert same == parsed.block_keys.tolist()


def test_at_most_the_stated_blocks_of_a_prompt_are_looked_at() -> None:
    request = make_request("hello " * 1000)

    by_blocks, _ = blocks_of(request, ApproximateProducer(max_prefix_blocks_to_match=5))
    by_tokens, _ = blocks_of(request, ApproximateProducer(max_prefix_tokens_to_match=640))

    assert (len(by_blocks), len(by_tokens)) == (5, 10)


def test_both_ends_of_a_pair_hold_the_prompt() -> None:
    memory, context = PolicyMemory({APPROXIMATE: ApproximateProducer()}), make_context(3)
    lease = lease_of(context.table, 1, context.request, prefill=0)

    memory.began(lease, context.table, now=1.0)

    assert memory.match(context, APPROXIMATE).share.tolist() == [1.0, 1.0, 0.0]
    assert memory.tokens_in_flight(context.table).tolist() == [100, 0, 0]


def test_a_precise_producer_reads_the_routers_own_index() -> None:
    context = make_context(2, indexed_tokens=np.array([0.0, 750.0]))

    found = PolicyMemory({}).match(context, PRECISE)

    assert found.tokens.tolist() == [0, 750]
    assert found.share[1] == pytest.approx(750 / context.prompt_tokens)


def test_a_known_cache_size_bounds_the_index_when_it_tunes_itself() -> None:
    tuned, fixed = (
        PolicyMemory({APPROXIMATE: ApproximateProducer(auto_tune=tune)}, default=APPROXIMATE)
        for tune in (True, False)
    )
    context = make_context(1, capacity_tokens=640)

    for memory in (tuned, fixed):
        memory.began(lease_of(context.table, 0, context.request), context.table, now=0.0)

    assert tuned.match(context, "").tokens[0] == pytest.approx(640)
    assert fixed.match(context, "").share[0] == 1.0


def test_cold_prompts_are_ordered_by_when_and_cached_ones_do_not_count() -> None:
    memory = PolicyMemory({APPROXIMATE: ApproximateProducer()}, lru_size=2)
    table = make_table(4)
    prompts = [make_request(f"{number} " * 900) for number in range(3)]
    for row, request in enumerate(prompts):
        memory.began(lease_of(table, row, request), table, now=float(row))

    memory.began(lease_of(table, 3, prompts[2]), table, now=9.0)

    assert memory.cold_order(table).tolist() == [-1, 0, 1, -1]


def test_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "MOST_SESSIONS", 2)
    memory, context = PolicyMemory({}), make_context(2)
    for number in range(3):
        request = make_request("x", session=f"s{number}")
        memory.began(lease_of(context.table, 1, request), context.table, now=0.0)

    rows = []
    for number in range(3):
        context.request = make_request("x", session=f"s{number}")
        rows.append(memory.session_row(context, 1000.0))

    assert rows == [-1, 1, 1]


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.integers(0, 2)), max_size=40))
@settings(deadline=None)
def test_any_interleaving_of_begin_and_end_leaves_no_tokens_in_flight(
    steps: list[tuple[int, bool, int]],
) -> None:
    memory, table = PolicyMemory({}), make_table(3)
    leases = [
        lease_of(table, number % 3, make_request("x"), number=number, work=number * 7)
        for number in range(6)
    ]
    begun: set[int] = set()
    for number, is_begin, _ in steps:
        if is_begin and number not in begun:
            begun.add(number)
            memory.began(leases[number], table, now=0.0)
        elif not is_begin:
            memory.ended(leases[number])

    for lease in leases:
        memory.ended(lease)

    assert memory.tokens_in_flight(table).tolist() == [0, 0, 0]
    assert not memory._open


def test_work_on_an_instance_that_is_gone_is_forgotten_with_the_next_request() -> None:
    memory, table = PolicyMemory({}), make_table(2)
    memory.began(lease_of(table, 0, make_request("x")), table, now=0.0)
    table.instances[0].row = -1
    later = make_table(2)

    memory.began(lease_of(later, 1, make_request("x"), number=2), later, now=1.0)

    assert list(memory._open) == [2]
