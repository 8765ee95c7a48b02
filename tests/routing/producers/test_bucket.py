"""A token bucket in virtual time."""

import pytest

from routing.producers.bucket import Bucket


def test_it_starts_full_and_refills_at_its_rate() -> None:
    bucket = Bucket(10, 20, now=0.0)

    bucket.take(15, now=0.0)

    assert bucket.level(now=0.0) == 5
    assert bucket.level(now=1.0) == 15
    assert bucket.level(now=100.0) == 20


def test_a_clock_that_goes_back_gives_nothing() -> None:
    bucket = Bucket(10, 10, now=5.0)

    bucket.take(10, now=5.0)

    assert bucket.level(now=4.0) == 0
    assert bucket.wait(1, now=5.0) == pytest.approx(0.1)


def test_more_than_a_full_bucket_waits_for_a_full_one() -> None:
    bucket = Bucket(10, 20, now=0.0)

    at_once = bucket.wait(1000, now=0.0)
    bucket.take(1000, now=0.0)

    assert at_once == 0
    assert bucket.wait(1, now=0.0) == pytest.approx(98.1)


def test_what_is_given_back_never_makes_it_fuller_than_full() -> None:
    bucket = Bucket(10, 20, now=0.0)
    bucket.take(5, now=0.0)

    bucket.give_back(50)

    assert bucket.level(now=0.0) == 20


@pytest.mark.parametrize(("size", "expected"), [(40.0, 30.0), (12.0, 2.0), (8.0, -2.0)])
def test_another_size_keeps_what_was_used(size: float, expected: float) -> None:
    bucket = Bucket(10, 20, now=0.0)
    bucket.take(10, now=0.0)

    bucket.resize(1, size, now=0.0)

    assert bucket.level(now=0.0) == expected
