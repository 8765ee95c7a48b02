"""A ring of 160 virtual nodes an endpoint."""

from collections import Counter
from typing import Any

from routing.core.scoring import Context
from routing.pool.policies.session_hash import make_session_hash
from tests.routing.contexts import make_context
from tests.routing.pool.builders import make_request


def asked(session: str | None, rows: list[int] | None = None, **overrides: Any) -> Context:
    return make_context(5, rows=rows, request=make_request("x", session=session, **overrides))


def test_a_session_stays_whatever_the_load_is() -> None:
    policy = make_session_hash()
    context = asked("s1")
    first = policy.choose(context).rows

    context.table.requests[first[0]] = 500

    assert policy.choose(context).rows == first


def test_sessions_spread_over_all_endpoints() -> None:
    policy, table = make_session_hash(), asked("x").table
    first = Counter()
    for number in range(1000):
        context = asked(f"s{number}")
        context.table = table
        first[policy.choose(context).rows[0]] += 1

    assert len(first) == 5
    assert min(first.values()) > 100


def test_when_an_endpoint_is_out_only_its_sessions_move() -> None:
    policy, table = make_session_hash(), asked("x").table
    for number in range(200):
        whole, part = asked(f"s{number}"), asked(f"s{number}", rows=[0, 1, 3, 4])
        whole.table = part.table = table

        before, after = policy.choose(whole).rows, policy.choose(part).rows

        assert after == [row for row in before if row != 2]


def test_without_a_session_chance_decides() -> None:
    policy, context = make_session_hash(), asked(None)

    first = {policy.choose(context).rows[0] for _ in range(60)}

    assert len(first) > 1
