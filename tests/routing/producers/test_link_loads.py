"""What pairs have still to move, at both ends, and what was ahead of each transfer."""

from types import SimpleNamespace
from typing import Any, cast

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from routing.core.lease import Lease
from routing.core.table import EndpointTable, Instance
from routing.producers.link_loads import LinkLoads

A, B, X, Y = (Instance(cast(Any, None), row, row) for row in range(4))


def table() -> EndpointTable:
    columns = SimpleNamespace(outgoing_tokens=np.zeros(4), incoming_tokens=np.zeros(4))
    return cast(EndpointTable, columns)


def lease(
    number: int, prefill: Instance | None, destination: Instance, tokens: int = 1000
) -> Lease:
    predicted = SimpleNamespace(destination_hit_tokens=0)
    return cast(
        Lease,
        SimpleNamespace(
            number=number,
            prefill=prefill,
            destination=destination,
            request=SimpleNamespace(parsed=SimpleNamespace(prompt_tokens=tokens)),
            decision=SimpleNamespace(predicted=predicted),
        ),
    )


def test_both_ends_carry_what_is_still_to_be_moved_until_it_has_arrived() -> None:
    links, columns, one = LinkLoads(), table(), lease(1, A, X)

    links.begin(columns, one)
    before = columns.outgoing_tokens.tolist(), columns.incoming_tokens.tolist()
    links.end(columns, one)

    assert before == ([1000, 0, 0, 0], [0, 0, 1000, 0])
    assert not columns.outgoing_tokens.any()
    assert not columns.incoming_tokens.any()


def test_a_request_that_stays_in_one_place_moves_nothing() -> None:
    links, columns = LinkLoads(), table()

    links.begin(columns, lease(1, None, X))

    assert not columns.incoming_tokens.any()


def test_what_was_on_the_wire_at_the_busier_end_was_ahead() -> None:
    links, columns = LinkLoads(), table()
    to_x, from_a, not_ready, last = (
        lease(1, B, X, 100), lease(2, A, Y, 700), lease(3, A, X, 5000), lease(4, A, X),
    )  # fmt: skip
    for one in (to_x, from_a, not_ready, last):
        links.begin(columns, one)
    for one in (to_x, from_a, last):
        links.ready(one)

    ahead = [links.end(columns, one) for one in (to_x, from_a, not_ready, last)]

    assert ahead == [0, 0, 0, 700]


def test_a_move_of_nothing_ends_with_what_was_beside_it() -> None:
    links, columns = LinkLoads(), table()
    something, nothing, more = lease(1, A, X, 100), lease(2, A, X, 0), lease(3, A, X, 50)
    for one in (something, nothing):
        links.begin(columns, one)
        links.ready(one)

    links.end(columns, something)
    links.end(columns, nothing)
    links.begin(columns, more)
    links.ready(more)

    assert links.end(columns, more) == 0
    assert links._on_wire == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["begin", "ready", "end", "gone"]),
            st.integers(0, 5),
            st.sampled_from([A, B]),
            st.sampled_from([X, Y]),
            st.sampled_from([0, 10, 1000]),
        ),
        max_size=60,
    )
)
def test_nothing_is_left_when_every_lease_has_ended(
    steps: list[tuple[str, int, Instance, Instance, int]],
) -> None:
    links, columns, known = LinkLoads(), table(), dict[int, Lease]()

    for number, (action, which, source, destination, tokens) in enumerate(steps):
        if action == "begin":
            known[number] = lease(number, source, destination, tokens)
            links.begin(columns, known[number])
        elif known:
            one = known[sorted(known)[which % len(known)]]
            if action == "ready":
                links.ready(one)
            else:
                links.end(columns, one)
    for one in known.values():
        links.end(columns, one)

    assert not columns.outgoing_tokens.any()
    assert not columns.incoming_tokens.any()
    assert links._on_wire == {}
