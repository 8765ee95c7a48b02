"""Hours of usage are recomputed from events; buckets are disjoint and nothing is lost."""

from datetime import timedelta
from typing import Any

import pytest

from controlplane.metering import digest, services
from controlplane.metering.models import StaleHour, UsageHour
from controlplane.serving.models import Pool
from tests.controlplane.finance.rows import make_pool
from tests.controlplane.metering.rows import (
    AT,
    HOUR,
    first_prompt,
    make_event,
    make_events,
    make_segment,
    make_usage_hour,
    unchanging,
)

pytestmark = pytest.mark.django_db


def ingest(*events: Any) -> None:
    services.ingest_segment(make_segment(events))
    services.recompute_stale_hours()


def test_an_hour_is_the_sum_of_its_events() -> None:
    ingest(*make_events(1, 4, ended_at=AT + 3), make_event(5, received_at=AT - 5))

    row = UsageHour.objects.get()

    assert row.hour == HOUR
    assert (row.requests, row.requests_ok) == (5, 5)
    assert (row.input_uncached, row.cache_read, row.cache_write) == (2000, 3000, 0)
    assert (row.output, row.reasoning) == (250, 0)
    assert row.first_request_at.timestamp() == AT - 5
    assert row.last_response_at.timestamp() == AT + 3
    assert digest.count(row.ttft_digest) == 5
    assert abs((digest.quantile(row.ttft_digest, 0.5) or 0) / 0.2 - 1) < 0.02


def test_a_second_run_writes_the_same_rows() -> None:
    ingest(*make_events(1, 4), make_event(5, policy="random"), make_event(6, node="gpu-2"))
    first = unchanging(UsageHour)

    services.recompute_usage_hour(pool="granite", hour=HOUR)

    assert unchanging(UsageHour) == first
    assert len(first) == 3
    assert not StaleHour.objects.exists()


def test_late_events_are_added_to_the_hour() -> None:
    ingest(*make_events(1, 4))
    ingest(*make_events(5, 6))

    assert UsageHour.objects.get().requests == 6


def test_a_retried_attempt_is_waste_and_its_request_counts_once() -> None:
    lost = make_event(1, outcome="error", status=502, delivered=False, completion_tokens=7)
    answered = make_event(2, attempt=2, request_id="r-1")

    ingest(lost, answered)

    row = UsageHour.objects.get()
    assert (row.requests, row.requests_ok, row.attempts_retried) == (1, 1, 1)
    assert (row.output, row.waste_output) == (50, 7)
    assert (row.input_uncached, row.waste_input_uncached, row.waste_cache_read) == (400, 400, 600)


def test_a_routers_first_prompt_is_neither_a_request_nor_a_retry_nor_billable() -> None:
    ingest(first_prompt(1))

    row = UsageHour.objects.get()
    assert all(getattr(row, name) == 0 for name in [*UsageHour.COUNTS, *UsageHour.BUCKETS])
    assert (row.waste_input_uncached, row.waste_output) == (302, 1)


def test_refused_failed_and_aborted_requests_are_counted_apart() -> None:
    nobody = {"endpoint": None, "instance": None, "node": None, "role": None}
    unknown = {"prompt_tokens": None, "cached_tokens": None, "completion_tokens": None}
    refused = make_event(1, outcome="refused", status=429, token_source="none", **nobody, **unknown)
    failed = make_event(2, outcome="error", status=502, token_source="none", **unknown)
    aborted = make_event(3, outcome="aborted", token_source="counted_by_router")

    ingest(refused, failed, aborted)

    rows = UsageHour.objects.all()
    assert sum(row.requests for row in rows) == 3
    assert sum(row.requests_refused for row in rows) == 1
    assert sum(row.requests_failed for row in rows) == 1
    assert sum(row.requests_aborted for row in rows) == 1
    assert sum(row.uncounted for row in rows) == 1
    assert sum(row.counted_by_router for row in rows) == 1


def test_hours_of_another_pool_are_left_alone() -> None:
    ingest(*make_events(1, 2))
    services.recompute_usage_hour(pool="other", hour=HOUR + timedelta(hours=1))

    assert UsageHour.objects.get().pool == "granite"


def test_a_pool_that_changes_its_engines_does_not_count_twice() -> None:
    pool = make_pool(engine="simulated")
    make_usage_hour(source="simulated", project="of-the-history")
    ingest(*make_events(1, 4))
    Pool.objects.filter(pk=pool.pk).update(engine="vllm")

    ingest(*make_events(5, 6))

    rows = UsageHour.objects.values_list("project", "source", "requests")
    assert ("chat", "measured", 6) in rows
    assert [source for project, source, _ in rows if project == "chat"] == ["measured"]
    assert "of-the-history" in {project for project, _, _ in rows}
