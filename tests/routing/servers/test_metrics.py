"""The router's own metrics page."""

from prometheus_client.parser import text_string_to_metric_families

from routing.servers.metrics import RouterMetrics


def test_the_page_can_be_read_by_prometheus() -> None:
    metrics = RouterMetrics()
    metrics.request("p", "ok", "200").inc()
    metrics.ttft("p", "consort").observe(0.3)

    families = {family.name for family in text_string_to_metric_families(metrics.page().decode())}

    assert {
        "consort_requests",
        "consort_ttft_seconds",
        "consort_spool_dropped_segments",
    } <= families


def test_two_routers_in_one_process_do_not_share_series() -> None:
    one, other = RouterMetrics(), RouterMetrics()

    one.request("p", "ok", "200").inc()

    assert b'consort_requests_total{outcome="ok"' in one.page()
    assert b'consort_requests_total{outcome="ok"' not in other.page()


def test_dropped_segments_only_grow() -> None:
    metrics = RouterMetrics()

    for total in (0, 2, 2, 5):
        metrics.dropped_segments(total)

    assert b"consort_spool_dropped_segments_total 5.0" in metrics.page()
