"""A record as a table: what is drawn equals what is written, and zeros have no column."""

import json
from typing import Any

from controlplane.console import decisionpage
from tests.controlplane.decisions.records import Desk


def record(**changes: Any) -> dict[str, Any]:
    return json.loads(json.dumps(Desk().decide())) | changes


def test_terms_that_are_zero_for_all_have_no_column_and_are_named() -> None:
    told = decisionpage.candidates_of(record())

    words = [str(word) for _pattern, word in told.columns]
    assert "decode" in words
    assert "money" not in words
    assert "money" in told.zero


def test_rows_are_ranked_by_price_and_the_chosen_one_is_marked() -> None:
    line = record()

    rows = decisionpage.candidates_of(line).rows

    assert [row.rank for row in rows] == [1, 2, 3]
    assert [row.total for row in rows] == sorted(row.total or 0 for row in rows)
    assert [row.endpoint for row in rows if row.chosen] == [line["destination"]]
    assert rows[0].behind == 0


def test_a_bar_says_its_terms_in_words_and_fills_the_dearest() -> None:
    rows = decisionpage.candidates_of(record()).rows

    assert f'aria-label="{rows[-1].endpoint}: ' in rows[-1].bar
    assert "decode" in rows[-1].bar


def test_filtered_endpoints_stand_under_their_rule() -> None:
    ((rule, words, count, names),) = decisionpage.filtered_of(record())

    assert (rule, count, names) == ("state", 1, ["gpu-kr-11"])
    assert words == "1 draining (state)"


def test_differences_are_marked_only_where_they_are() -> None:
    before = record()
    after = before | {"destination": "gpu-kr-01", "policy": "random"}

    changed = [str(row.name) for row in decisionpage.differences(before, after) if row.differs]

    assert changed == ["Policy", "Destination", "Price of the destination s"]


def test_an_empty_record_makes_an_empty_table() -> None:
    told = decisionpage.candidates_of({})

    assert (told.rows, told.columns, told.more) == ([], [], 0)
    assert decisionpage.notes_of({"degraded": ["no-engine-signals"]})
