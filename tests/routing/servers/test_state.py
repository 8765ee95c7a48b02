"""Counts of answers."""

from routing.servers.state import RequestCounts


def test_an_answer_without_an_attempt_is_counted_and_is_no_failure() -> None:
    counts = RequestCounts()

    counts.count(401)
    counts.count(500)

    assert (counts.total, counts.failed) == (2, 0)
    assert counts.by_status == {401: 1, 500: 1}
