"""Sessions stay where they were."""

from routing.scorers.session_affinity import SessionAffinityScorer
from tests.routing.contexts import make_context


def test_the_sessions_endpoint_gets_1_and_the_others_0() -> None:
    assert SessionAffinityScorer().score(make_context(3, session=1)).tolist() == [0, 1, 0]


def test_without_a_session_all_get_1() -> None:
    assert SessionAffinityScorer().score(make_context(3)).tolist() == [1, 1, 1]


def test_a_session_whose_endpoint_is_no_candidate_prefers_nobody() -> None:
    scores = SessionAffinityScorer().score(make_context(3, rows=[0, 2], session=1))

    assert scores.tolist() == [0, 0]
