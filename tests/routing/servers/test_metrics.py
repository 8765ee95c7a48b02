"""The router's own metrics page."""

from prometheus_client.parser import text_string_to_metric_families

from routing.servers.metrics import RouterMetrics
from tests.routing.servers.scripted import Stage, chat, document, status_script


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


async def test_failures_of_an_endpoint_that_is_gone_leave_the_page(stage: Stage) -> None:
    await stage.engine("bad", status_script(500))
    good = await stage.engine("good")
    await stage.load()
    for _ in range(2):
        await stage.ask(chat())
    failures = b'consort_attempt_failures_total{endpoint="bad"'

    before = (await stage.admin("GET", "/metrics")).body
    await stage.push(document([good], version=2))
    after = (await stage.admin("GET", "/metrics")).body

    assert failures in before
    assert failures not in after
