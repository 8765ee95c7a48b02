"""Published tables: complete, marked for one use each, and refused by name when unknown."""

from collections.abc import Callable

import pytest

from routing.simulator.published.tables import (
    PublishedError,
    members,
    sources,
    table,
    tables,
    traffic,
)


def test_every_table_names_a_source_a_fleet_and_a_workload() -> None:
    for one in tables():
        assert one.source in sources(), one.id
        assert members(one.fleet), one.id
        assert traffic(one.workload).output_tokens > 0, one.id
        assert one.rows, one.id


def test_pools_of_several_classes_only_judge() -> None:
    mixed = [one for one in tables() if len({each.accelerator for each in members(one.fleet)}) > 1]

    assert mixed
    assert {one.use for one in mixed} == {"judge"}


def test_stages_send_what_was_published() -> None:
    for one in tables():
        for row in one.rows:
            if row.sent is not None:
                assert row.sent == round(row.rate_qps * row.stage_s), one.id


def test_milliseconds_of_the_files_are_seconds_in_rows() -> None:
    row = table("nxt-3v-granite-k8s").rows[1]

    assert (row.rate_qps, row.tpot_mean_s, row.out_tok_s) == (5.0, 0.0106, 3735.4)


def test_two_routers_of_one_page_are_two_tables() -> None:
    service, router = (table("guide-perrate-precise07", side) for side in ("service", "llm-d"))

    assert (service.policy, router.policy) == ("random", "llm-d-precise")
    assert service.rows[1].out_tok_s == 1797.0
    assert router.rows[1].out_tok_s == 1707.0


def test_what_was_not_published_is_unknown() -> None:
    assert table("guide-perrate-precise07").rows[1].tpot_mean_s is None


@pytest.mark.parametrize("ask", [table, traffic, members])
def test_unknown_names_are_refused_with_the_known(ask: Callable[[str], object]) -> None:
    with pytest.raises(PublishedError, match="Known are:"):
        ask("abacus")
