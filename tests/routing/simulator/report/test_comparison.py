"""Policies beside each other."""

from routing.simulator.report.comparison import page_of
from routing.simulator.report.html import html_of
from routing.simulator.report.stage import Spread, StageReport
from tests.routing.simulator.report.reading import read


def _stage(rate: float | None, tokens: float, *, is_warm_up: bool = False) -> StageReport:
    spread = Spread(mean=1.0, p50=0.5, p90=2.0, p99=3.0)
    return StageReport(
        name=f"{rate} qps", rate_qps=rate, is_warm_up=is_warm_up, sent=10, ok=9, ends={"ok": 9},
        seconds=10.0, requests_per_s=0.9, output_tokens_per_s=tokens, input_tokens_per_s=tokens,
        goodput_rps=0.8, prefix_hit_rate=None, ttft=spread, tpot=spread, e2e=spread,
        pair_share=0.0, preemptions=0,
    )  # fmt: skip


REPORTS = {
    "consort": [_stage(5, 50, is_warm_up=True), _stage(20, 200), _stage(10, 100)],
    "random": [_stage(5, 40, is_warm_up=True), _stage(20, 150), _stage(10, 90)],
}


def test_measured_stages_are_drawn_in_order_of_their_rate() -> None:
    page = page_of("Race", REPORTS)
    throughput = page.sections[0].charts[0]

    assert throughput.lines[0].points == ((10, 100), (20, 200))
    assert "consort: 100 at the lowest rate, 200 at the highest." in throughput.finding


def test_every_stage_of_every_policy_is_a_line_of_the_table() -> None:
    table = page_of("Race", REPORTS).sections[0].tables[0]

    assert len(table.rows) == 6
    assert all(len(row) == len(table.head) for row in table.rows)


def test_published_points_are_drawn_and_announced() -> None:
    page = page_of("Race", REPORTS, published={"throughput": [(20.0, 180.0, "published: Service")]})

    assert [mark.y for mark in page.sections[0].charts[0].marks] == [180.0]
    assert any("published" in line for line in page.text)


def test_stages_without_a_rate_have_a_table_and_no_plot() -> None:
    page = page_of("Race", {"consort": [_stage(None, 50)]})

    assert page.sections[0].charts == ()
    assert len(page.sections[0].tables[0].rows) == 1


def test_the_page_is_whole_in_both_languages() -> None:
    for language in ("en", "ko"):
        read(html_of(page_of("Race", REPORTS, language=language)))
