"""Many processes' figures as those of one router."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.servers.merging import (
    Page,
    add_numbers,
    merge_decisions,
    merge_pages,
    merge_pools,
    parse_page,
    retire,
    write_page,
)
from routing.servers.metrics import RouterMetrics


def page(requests: int, running: int = 0) -> Page:
    metrics = RouterMetrics()
    metrics.request("main", "ok", "200").inc(requests)
    metrics.ttft("main", "consort").observe(0.03)
    metrics.running.labels("main").set(running)
    return parse_page(metrics.page().decode())


def value(of: Page, family: str, series: str) -> float:
    return of[family].series[series]


def test_a_page_is_written_as_it_was_read() -> None:
    metrics = RouterMetrics()
    metrics.request("main", "ok", "200").inc(3)

    again = write_page(parse_page(metrics.page().decode()))

    assert parse_page(again.decode()) == parse_page(metrics.page().decode())


def test_counters_and_histograms_are_added_and_gauges_told_apart() -> None:
    merged = merge_pages({"0": page(3, running=1), "1": page(4, running=2)}, retired={})

    labels = 'consort_requests_total{outcome="ok",pool="main",status="200"}'
    assert value(merged, "consort_requests_total", labels) == 7
    bucket = 'consort_ttft_seconds_bucket{le="0.05",policy="consort",pool="main"}'
    assert value(merged, "consort_ttft_seconds", bucket) == 2
    running = merged["consort_requests_running"].series
    assert running == {
        'consort_requests_running{process="0",pool="main"}': 1,
        'consort_requests_running{process="1",pool="main"}': 2,
    }
    assert merged["consort_document_version"].series == {}


def test_a_gauge_without_labels_gets_the_process_too() -> None:
    own = parse_page("# TYPE open gauge\nopen 4.0\n")

    merged = merge_pages({"": own, "2": own}, retired={})

    assert merged["open"].series == {"open": 4.0, 'open{process="2"}': 4.0}


@given(counts=st.lists(st.integers(0, 100), min_size=1, max_size=5))
def test_no_counter_falls_when_a_process_ends(counts: list[int]) -> None:
    retired: Page = {}
    labels = 'consort_requests_total{outcome="ok",pool="main",status="200"}'
    pages = {str(number): page(count) for number, count in enumerate(counts)}
    before = value(merge_pages(pages, retired=retired), "consort_requests_total", labels)

    retire(retired, pages.pop("0"))
    pages["0"] = page(0)

    after = value(merge_pages(pages, retired=retired), "consort_requests_total", labels)
    assert after == before == sum(counts)


def test_a_value_that_is_no_number_is_unknown() -> None:
    read = parse_page("# TYPE a counter\na_total x\n\n# EOF\n")

    assert str(read["a"].series["a_total"]) == "nan"


def endpoint(**changes: Any) -> dict[str, Any]:
    return {
        "id": "a",
        "running": 1,
        "signal_age_seconds": 0.4,
        "inflight_requests": 1,
        "inflight_prefill_tokens": 100,
        "inflight_sequences": 1,
        "peers_requests": 0,
        "breaker": {"state": "closed"},
    } | changes


def state(*endpoints: dict[str, Any], **changes: Any) -> dict[str, Any]:
    pool = {"pool": "main", "leases_open": 2, "endpoints": list(endpoints)} | changes
    return {"pools": {"main": pool}}


def test_own_work_is_added_and_what_all_observe_is_the_freshest() -> None:
    merged = merge_pools(
        [
            state(endpoint(running=5, signal_age_seconds=0.3, peers_requests=3)),
            state(endpoint(running=6, signal_age_seconds=0.1, inflight_requests=2)),
            state(endpoint(running=None, signal_age_seconds=None)),
        ]
    )["main"]

    (one,) = merged["endpoints"]
    assert (merged["leases_open"], one["inflight_requests"]) == (6, 4)
    assert (one["running"], one["signal_age_seconds"]) == (6, 0.1)
    assert one["peers_requests"] == 0


@pytest.mark.parametrize("position", [0, 1])
def test_a_breaker_that_is_open_somewhere_is_shown(position: int) -> None:
    parts = [endpoint(), endpoint()]
    parts[position]["breaker"] = {"state": "open"}

    merged = merge_pools([state(part) for part in parts])

    assert merged["main"]["endpoints"][0]["breaker"] == {"state": "open"}


def test_other_routers_requests_are_what_no_process_of_this_one_has() -> None:
    parts = [endpoint(inflight_requests=1, peers_requests=5), endpoint(inflight_requests=2)]

    merged = merge_pools([state(part) for part in parts])

    assert merged["main"]["endpoints"][0]["peers_requests"] == 3


def test_a_pool_that_only_some_have_is_shown_and_queues_are_added() -> None:
    other = {"pools": {}}

    merged = merge_pools(
        [state(queue={"requests": 2, "bands": {"0": 1}}), other, state(queue={"requests": 3})]
    )

    assert merged["main"]["queue"] == {"requests": 5, "bands": {"0": 1}}


def test_only_numbers_are_added() -> None:
    parts = [{"a": True, "b": "x", "c": None}, {"a": True, "b": "y", "c": 2}]

    assert add_numbers(parts) == {"a": True, "b": "x", "c": 2}
    assert add_numbers([None]) is None


def test_shadow_sums_of_processes_are_added_beside_the_routers_lines() -> None:
    def part(asked: int) -> dict[str, Any]:
        return {
            "left_out": 1,
            "policies": {"main": "consort"},
            "sample_rates": {"main": 0.5},
            "shadow": {"main": {"random": {"asked": asked, "regret_seconds": 0.5}}},
        }

    own = {"router": "r", "decisions": [1], "last": 1, "left_out": 0, "shadow": {}}

    merged = merge_decisions(own, [part(3), part(4)])

    assert merged["shadow"] == {"main": {"random": {"asked": 7, "regret_seconds": 1.0}}}
    assert (merged["left_out"], merged["decisions"]) == (2, [1])
    assert merged["sample_rates"] == {"main": 0.5}
