"""Ids of decisions."""

from routing.pool.decision_ids import DecisionIds
from tests.routing.pool.builders import endpoint_dict, make_request, make_router


def test_ids_differ_within_a_core_and_between_cores_of_two_prefixes() -> None:
    ours, theirs = DecisionIds("aa-"), DecisionIds("bb-")

    found = [ids.next() for ids in (ours, theirs) for _ in range(100)]

    assert len(set(found)) == 200


def test_nothing_of_a_request_id_is_in_them() -> None:
    router = make_router(endpoint_dict("a"))

    first, second = (router.decide(make_request(id="d-1"), now=1.0).id for _ in range(2))

    assert first != second
    assert (first, second) == ("d-1", "d-2")
