"""The page of a race."""

import pytest

from routing.simulator.race.judges import verdicts
from routing.simulator.race.outcome import RaceReport
from routing.simulator.race.page import race_page
from routing.simulator.race.roles import advice_of, split_rows
from routing.simulator.report.html import html_of
from routing.simulator.report.messages import LANGUAGES, Language
from tests.routing.simulator.race.rows import entry, row
from tests.routing.simulator.race.test_roles import _report
from tests.routing.simulator.report.reading import read

PEERS = ("random", "round-robin", "least-requests", "dynamo", "llm-d-weighted", "llm-d-precise")
ROWS = tuple(
    row(
        {name: entry(place + rate / 20) for place, name in enumerate((*PEERS, "consort"))},
        rate=rate, fleet="nxt-3vendor", is_mixed=True,
    )
    for rate in (40.0, 85.0)
)  # fmt: skip
SPLITS = tuple(split_rows([_report("nxt-3vendor", 10.0), _report("pd-3vendor", 12.0)]))


def _race(*, is_quick: bool = False) -> RaceReport:
    return RaceReport(
        is_quick=is_quick, rows=ROWS, verdicts=tuple(verdicts(ROWS)), splits=SPLITS,
        advice=tuple(advice_of(SPLITS)),
    )  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_is_whole_and_every_table_has_its_columns(language: Language) -> None:
    page = race_page(_race(), language=language)

    read(html_of(page))
    for section in page.sections:
        for table in section.tables:
            assert all(len(line) == len(table.head) for line in table.rows)


def test_what_is_missed_comes_first() -> None:
    section = race_page(_race()).sections[0]
    results = [str(line[0]).partition(":")[0] for line in section.tables[0].rows]

    assert results == sorted(results, key=["missed", "not judged", "met"].index)
    assert set(results) == {"missed", "not judged", "met"}
    counts = {word: results.count(word) for word in ("met", "missed", "not judged")}
    assert section.text == (
        f"Of {len(results)} demands {counts['met']} are met, {counts['missed']} are missed,"
        f" {counts['not judged']} were not judged.",
    )


def test_plots_show_ours_the_service_and_the_best_others() -> None:
    plots = race_page(_race()).sections[2].charts

    assert [line.name for line in plots[0].lines] == [
        "consort", "random", "llm-d-precise", "llm-d-weighted", "dynamo", "least-requests",
    ]  # fmt: skip


def test_published_stages_of_the_same_fleet_are_beside_ours() -> None:
    throughput, goodput, *_ = race_page(_race()).sections[2].charts

    assert {mark.label for mark in throughput.marks} == {
        "Kubernetes Service, published", "llm-d, published",
    }  # fmt: skip
    assert (85.0, 7458.6) in {(mark.x, mark.y) for mark in throughput.marks}
    assert goodput.marks == ()


def test_a_quick_race_says_that_it_judges_nothing() -> None:
    assert "quick" in race_page(_race(is_quick=True)).text[0]


def test_advice_is_told_in_words() -> None:
    advice = race_page(_race()).sections[-1].tables[0]

    assert advice.rows[0][1:] == ("pd-3vendor", pytest.approx(1.2), "split")
