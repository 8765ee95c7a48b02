"""What a decision says of the endpoints that it left out."""

from tests.routing.pool.builders import endpoint_dict, make_request, make_router


def test_a_decision_says_which_rule_removed_an_endpoint() -> None:
    router = make_router(endpoint_dict("a"), endpoint_dict("out", state="draining"))

    decision = router.decide(make_request(), now=0.0, exclude=frozenset({"nobody"}))

    assert decision.rejected == {"out": "state"}
