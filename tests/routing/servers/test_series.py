"""Counters and histograms of each request, against those of the client library."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from routing.servers.series import Counts, Spreads

BOUNDS = (0.1, 0.5, 2.0)


def page(registry: CollectorRegistry) -> list[str]:
    """Lines without the times at which series were made."""
    return [
        line for line in generate_latest(registry).decode().splitlines() if "_created" not in line
    ]


@given(st.lists(st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.5, 1.9, 2.0, 7.0, 1e6])))
def test_a_histogram_reads_like_the_client_librarys(values: list[float]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    one = Spreads("t_seconds", "Text.", ["pool"], bounds=BOUNDS, registry=ours).of("p")
    other = Histogram("t_seconds", "Text.", ["pool"], buckets=BOUNDS, registry=theirs).labels("p")

    for value in values:
        one.observe(value)
        other.observe(value)

    assert page(ours) == page(theirs)


def test_a_counter_reads_like_the_client_librarys() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    one = Counts("things", "Text.", ["pool", "kind"], registry=ours)
    other = Counter("things", "Text.", ["pool", "kind"], registry=theirs)

    for kind, amount in (("a", 1), ("b", 2.5), ("a", 3)):
        one.of("p", kind).inc(amount)
        other.labels("p", kind).inc(amount)

    assert page(ours) == page(theirs)


@pytest.mark.parametrize("kind", [Counts, lambda *a, **k: Spreads(*a, **k, bounds=BOUNDS)])
def test_equal_labels_are_one_series(kind: type[Counts]) -> None:
    family = kind("t", "Text.", ["pool"], registry=CollectorRegistry())

    assert family.of("p") is family.of("p")
    assert family.of("p") is not family.of("q")


def test_series_that_are_not_kept_leave_the_page() -> None:
    registry = CollectorRegistry()
    counts = Counts("things", "Text.", ["pool", "kind"], registry=registry)
    counts.of("p", "a").inc()
    counts.of("q", "a").inc()

    counts.keep(lambda labels: labels[0] == "q")

    assert [line for line in page(registry) if line[0] != "#"] == [
        'things_total{kind="a",pool="q"} 1.0'
    ]
