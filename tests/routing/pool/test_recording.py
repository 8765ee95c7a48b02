"""What is kept of a moment is exact, bounded, and only kept when asked for."""

import json

from routing.core.table import PRICED
from tests.routing.pool.builders import endpoint_dict, make_request, make_router


def test_inputs_are_kept_only_when_they_are_asked_for() -> None:
    router, nobody = make_router(endpoint_dict("a")), make_router()

    assert router.decide(make_request(), now=0.0).inputs is None
    assert router.decide(make_request(), now=0.0, keep="refusals").inputs is None
    assert router.decide(make_request(), now=0.0, keep="always").inputs is not None
    assert nobody.decide(make_request(), now=0.0).inputs is None
    assert nobody.decide(make_request(), now=0.0, keep="refusals").inputs is not None


def test_inputs_hold_every_priced_column_exactly_and_unknown_as_null() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("b"))
    router.begin(make_request(), router.decide(make_request(), now=0.1), now=0.1)

    inputs = router.decide(make_request(), now=0.3, keep="always").inputs

    assert inputs is not None
    assert set(inputs["columns"]) == set(PRICED)
    assert inputs["columns"]["observed_at"] == [None, None]
    assert inputs["columns"]["open_until"] == [None, None]
    assert sorted(inputs["columns"]["requests"]) == [0.0, 1.0]
    assert json.loads(json.dumps(inputs, allow_nan=False)) == inputs


def test_inputs_do_not_grow_with_the_pool() -> None:
    roles = ["prefill", "decode", "both"]
    small = make_router(*(endpoint_dict(f"e{n}", role=roles[n % 3]) for n in range(200)))
    large = make_router(*(endpoint_dict(f"e{n}", role=roles[n % 3]) for n in range(500)))

    sizes = [
        len(json.dumps(router.decide(make_request(), now=0.0, keep="always").inputs))
        for router in (small, large)
    ]

    assert sizes[1] < 1.2 * sizes[0] < 60_000
