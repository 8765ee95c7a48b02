"""A segment counts once, whatever happens on the way."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction

from controlplane.metering import services
from controlplane.metering.models import (
    RouterProgress,
    SegmentRefusal,
    StaleHour,
    UsageEventRow,
    UsageHour,
    UsageSegment,
)
from controlplane.metering.services import Ingested
from tests.controlplane.metering.rows import HOUR, make_event, make_events, make_segment

pytestmark = pytest.mark.django_db


def stored_numbers() -> list[int]:
    return list(UsageEventRow.objects.order_by("sequence").values_list("sequence", flat=True))


def test_a_segment_is_stored_and_its_hours_are_stale() -> None:
    later = HOUR + timedelta(hours=1)
    events = [make_event(1), make_event(2, ended_at=later.timestamp() + 1)]

    outcome = services.ingest_segment(make_segment(events))

    assert outcome is Ingested.STORED
    assert sorted(StaleHour.objects.values_list("pool", "hour")) == [
        ("granite", HOUR),
        ("granite", later),
    ]
    row = UsageEventRow.objects.get(sequence=1)
    assert (row.input_uncached, row.cache_read, row.output, row.reasoning) == (400, 600, 50, 0)
    assert RouterProgress.objects.get().last_sequence == 2


def test_the_name_that_was_asked_for_is_kept() -> None:
    services.ingest_segment(make_segment([make_event(1), make_event(2, asked_model="chat")]))

    stored = UsageEventRow.objects.order_by("sequence").values_list("model", "asked_model")
    assert list(stored) == [("granite-4.1-8b", ""), ("granite-4.1-8b", "chat")]


def test_the_same_segment_again_changes_nothing() -> None:
    segment = make_segment(make_events(1, 5))
    services.ingest_segment(segment)
    StaleHour.objects.all().delete()

    outcome = services.ingest_segment(segment)

    assert outcome is Ingested.DUPLICATE
    assert stored_numbers() == [1, 2, 3, 4, 5]
    assert not StaleHour.objects.exists()


def test_an_overlap_with_equal_events_adds_what_is_missing() -> None:
    services.ingest_segment(make_segment(make_events(1, 5)))

    outcome = services.ingest_segment(make_segment(make_events(3, 9)))

    assert outcome is Ingested.STORED
    assert stored_numbers() == list(range(1, 10))
    assert [row.events for row in UsageSegment.objects.all()] == [5, 4]


def test_an_overlap_with_a_different_event_is_refused_whole() -> None:
    services.ingest_segment(make_segment(make_events(1, 5)))
    events = [make_event(5, completion_tokens=999), make_event(6)]

    outcomes = [services.ingest_segment(make_segment(events)) for _ in range(2)]

    assert outcomes == [Ingested.REFUSED, Ingested.REFUSED]
    assert stored_numbers() == [1, 2, 3, 4, 5]
    refusal = SegmentRefusal.objects.get()
    assert (refusal.reason, refusal.times_seen) == ("conflict", 2)
    assert RouterProgress.objects.get().last_sequence == 5


@pytest.mark.parametrize(
    ("segment", "reason"),
    [
        pytest.param(make_segment(make_events(1, 3), sha256="0" * 64), "checksum", id="damaged"),
        pytest.param(make_segment(make_events(1, 3), last_sequence=4), "malformed", id="too-few"),
        pytest.param(
            make_segment([make_event(1), make_event(3), make_event(3)]), "malformed", id="a-hole"
        ),
        pytest.param(
            make_segment([make_event(1), make_event(2, router="r2")]), "malformed", id="two-routers"
        ),
    ],
)
def test_a_damaged_segment_stores_nothing(segment: object, reason: str) -> None:
    outcome = services.ingest_segment(segment)  # type: ignore[arg-type]  # parametrised

    assert outcome is Ingested.REFUSED
    assert stored_numbers() == []
    assert SegmentRefusal.objects.get().reason == reason


def test_numbers_that_never_came_are_counted_as_missing() -> None:
    services.ingest_segment(make_segment(make_events(8, 9)))
    services.ingest_segment(make_segment(make_events(13, 14)))

    progress = RouterProgress.objects.get()
    assert (progress.last_sequence, progress.missing_events) == (14, 3)


def test_unknown_tokens_stay_unknown() -> None:
    event = make_event(
        1, prompt_tokens=None, cached_tokens=None, completion_tokens=None, token_source="none"
    )

    services.ingest_segment(make_segment([event]))

    row = UsageEventRow.objects.get()
    assert (row.input_uncached, row.cache_read, row.output) == (None, None, None)


@pytest.mark.django_db(transaction=True)
def test_of_six_deliveries_at_once_one_is_stored(at_the_same_time: object) -> None:
    segment = make_segment(make_events(1, 20))

    at_the_same_time(6, services.ingest_segment, segment=segment)  # type: ignore[operator]

    assert stored_numbers() == list(range(1, 21))
    assert UsageSegment.objects.get().events == 20


@pytest.mark.parametrize(
    "wrong",
    [
        {"ended_at": 1e30},
        {"ended_at": -1e30},
        {"request_id": "x" * 300},
        {"tenant": "a\0b"},
        {"completion_tokens": 2**70},
    ],
    ids=["after-the-calendar", "before-it", "too-long", "nul", "too-large"],
)
def test_an_event_that_no_column_holds_refuses_its_segment_and_harms_no_other(
    wrong: dict[str, object],
) -> None:
    outcome = services.ingest_segment(make_segment([make_event(1), make_event(2, **wrong)]))

    assert outcome is Ingested.REFUSED
    assert stored_numbers() == []
    assert SegmentRefusal.objects.get().reason == "malformed"
    assert services.ingest_segment(make_segment(make_events(1, 2))) is Ingested.STORED


@pytest.mark.django_db(transaction=True)
def test_a_sum_does_not_take_the_mark_of_events_it_cannot_see_yet() -> None:
    services.ingest_segment(make_segment(make_events(1, 2)))
    stored, may_commit = threading.Event(), threading.Event()

    def ingest_slowly() -> None:
        with transaction.atomic():
            services.ingest_segment(make_segment(make_events(3, 5)))
            stored.set()
            may_commit.wait(20)
        connection.close()

    worker = threading.Thread(target=ingest_slowly)
    worker.start()
    assert stored.wait(20)

    meanwhile = services.recompute_stale_hours()
    may_commit.set()
    worker.join()
    services.recompute_stale_hours()

    assert meanwhile == 0
    assert UsageHour.objects.get().requests == 5
