"""Breakers: when they open, for how long, and that they close again."""

import pytest

from routing.producers.breakers import (
    CLOSED,
    FIRST_OPEN_SECONDS,
    LONGEST_OPEN_SECONDS,
    THRESHOLDS,
    Breaker,
    BreakerBook,
)


@pytest.mark.parametrize(("kind", "threshold"), THRESHOLDS.items())
def test_a_breaker_opens_at_its_kinds_threshold(kind: str, threshold: int) -> None:
    breaker = Breaker()

    for _ in range(threshold - 1):
        breaker.fail(kind, now=0.0)
    before = breaker.state(now=0.0)
    breaker.fail(kind, now=0.0)

    assert before == "closed"
    assert breaker.state(now=0.0) == "open"
    assert breaker.open_until == FIRST_OPEN_SECONDS


def test_kinds_are_counted_apart() -> None:
    breaker = Breaker()

    for kind in ("status", "status", "timeout", "stall", "stall"):
        breaker.fail(kind, now=0.0)

    assert breaker.state(now=0.0) == "closed"


def test_a_success_forgets_failures_before_it() -> None:
    breaker = Breaker()
    for _ in range(2):
        breaker.fail("status", now=0.0)

    breaker.succeed()
    breaker.fail("status", now=0.0)

    assert breaker.state(now=0.0) == "closed"


def test_the_pause_doubles_with_each_failed_probe_up_to_a_bound() -> None:
    breaker, now, pauses = Breaker(), 0.0, []

    for _ in range(8):
        breaker.fail("connect", now=now)
        pauses.append(breaker.open_until - now)
        now = breaker.open_until

    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert pauses[-1] == LONGEST_OPEN_SECONDS
    assert breaker.state(now=now) == "half-open"


def test_late_failures_do_not_prolong_an_open_breaker() -> None:
    breaker = Breaker()

    for now in (0.0, 0.1, 0.9):
        breaker.fail("connect", now=now)

    assert breaker.open_until == FIRST_OPEN_SECONDS


def test_a_book_forgets_what_is_gone_and_what_works() -> None:
    book: BreakerBook[str] = BreakerBook()
    for name in ("a", "b", "c"):
        book.fail(name, "connect", now=0.0)

    worked = book.succeed("a")
    book.keep_only(lambda name: name != "b")

    assert worked
    assert not book.succeed("a")
    assert len(book) == 1
    assert book.of("a").open_until == CLOSED


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="Unknown failure kind '4xx'; known are connect, status"):
        BreakerBook[str]().fail("a", "4xx", now=0.0)
