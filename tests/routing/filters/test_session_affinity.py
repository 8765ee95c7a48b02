"""A session keeps its endpoint while that is a candidate."""

from routing.filters.session_affinity import SessionAffinityFilter
from tests.routing.contexts import make_context


def test_only_the_sessions_endpoint_stays() -> None:
    assert SessionAffinityFilter().keep(make_context(3, session=2)).tolist() == [False, False, True]


def test_all_stay_when_it_is_gone_or_unknown() -> None:
    gone = make_context(3, rows=[0, 1], session=2)

    assert SessionAffinityFilter().keep(gone).tolist() == [True, True]
    assert SessionAffinityFilter().keep(make_context(2)).tolist() == [True, True]
