"""Compositions for pages: numbers add up, and people of a tenant get no rows."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.common.permissions import NotPermittedError
from controlplane.console.selectors import changes, control, fleet, money, node, overview, pools
from controlplane.console.selectors.pairs import pair_table
from tests.controlplane.console.scene import FLEET, Scene


def test_capacity_nests_and_its_healths_sum_up(scene: Scene) -> None:
    capacity = overview.capacity(scene.operator)
    counts = capacity.accelerators

    assert counts.delivered == sum(count for *_rest, count in FLEET)
    assert counts.healthy + counts.degraded + counts.failed + counts.unknown == counts.delivered
    assert counts.active <= counts.reserved <= counts.delivered
    assert capacity.reserved_not_healthy == ["gpu-11/5"]
    assert dict(capacity.healthy_not_reserved) == {"910B": 8, "ATOM-Max": 4}


def test_utilisation_is_no_data_where_nobody_scraped(scene: Scene) -> None:
    rows = {row.model: row for row in overview.utilisation_by_vendor(scene.operator)}

    assert rows["MI325X"].utilisation == pytest.approx(0.55)
    assert rows["RNGD"].utilisation is None
    assert rows["RNGD"].not_scraped_since is not None
    assert rows["MI325X"].power_watts is None


def test_a_pool_row_counts_endpoints_and_routers(scene: Scene) -> None:
    row = pools.pool_rows([scene.pool])[0]

    assert row.roles == [("prefill", 4, 4), ("decode", 8, 8), ("both", 8, 8)]
    assert (row.version, row.acknowledged, row.routers) == (131, 2, 2)
    assert row.slo == "met"
    assert row.service.hit_rate == pytest.approx(17 / 21)


def test_without_usage_an_objective_is_no_data(scene: Scene) -> None:
    scene.pool.slug = "other"

    assert pools.pool_rows([scene.pool])[0].slo == "no_data"


def test_ttft_by_hour_keeps_the_hours_without_requests(scene: Scene) -> None:
    series = pools.ttft_by_hour("granite-chat")

    assert len(series) == 24
    assert [value is None for _hour, value in series].count(True) == 2


def test_the_month_adds_up_in_every_table(scene: Scene) -> None:
    month = money.month_of(scene.operator, start=money.month_start())

    assert month is not None
    classes = money.classes_of(scene.operator, month)
    assert sum(row.amount for row in classes) == month.total
    assert sum(row.total for row in month.nodes) == month.total
    assert month.cumulative[-1][1] == month.total
    assert sum(row.share for row in classes) == pytest.approx(1.0)


def test_a_month_without_ledger_is_none_and_months_roll_over(scene: Scene) -> None:
    december = datetime(2020, 12, 1, tzinfo=UTC)

    assert money.month_of(scene.operator, start=december) is None
    assert money.next_month(december) == datetime(2021, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", ["month_of", "newest_comparison"])
def test_people_of_a_tenant_may_not_read_costs(scene: Scene, name: str) -> None:
    arguments = {"start": money.month_start()} if name == "month_of" else {}

    with pytest.raises(NotPermittedError):
        getattr(money, name)(scene.tenant_user, **arguments)


def test_without_two_policies_there_is_no_comparison(scene: Scene) -> None:
    assert money.newest_comparison(scene.operator) is None


def test_the_board_shows_what_open_plans_make_of_a_node(scene: Scene) -> None:
    rows = {
        row.node.hostname: row
        for _site, _vendor, found in changes.board(scene.operator)
        for row in found
    }

    assert rows["gpu-02"].now == ["p", "p"]
    assert rows["gpu-02"].planned == ["d", "d"]
    assert rows["gpu-02"].plan == scene.plan
    assert rows["npu-21"].now == ["i"] * 8


def test_nodes_are_found_by_every_filter(scene: Scene) -> None:
    def names(**wanted: str) -> list[str]:
        return [row.hostname for row in fleet.filtered_nodes(scene.operator, wanted)]

    assert names(vendor="amd") == ["gpu-07"]
    assert names(role="decode") == ["gpu-07"]
    assert names(role="unassigned") == ["npu-21", "npu-31", "npu-41"]
    assert names(health="unknown") == ["npu-41"]
    assert names(q="gpu-0") == ["gpu-01", "gpu-02", "gpu-07"]
    assert names(q="npu-31-02") == ["npu-31"]
    assert names(state="retired") == []


def test_power_is_a_sum_of_what_is_known_and_none_where_nothing_is(scene: Scene) -> None:
    rows = {row.node.hostname: row for row in fleet.node_rows(scene.nodes)}

    assert rows["gpu-01"].power_watts == 620.0
    assert rows["npu-31"].power_watts is None
    assert rows["npu-31"].unassigned == 4


def test_a_timeline_mixes_audit_roles_and_findings_newest_first(scene: Scene) -> None:
    moments = node.timeline(scene.nodes[0])

    assert [moment.what for moment in moments] == [
        "role prefill in granite-chat",
        "role prefill and decode in granite-chat",
    ]


def test_a_nodes_cost_is_a_mean_per_hour_whose_parts_sum_up(scene: Scene) -> None:
    cost = node.node_cost(scene.operator, scene.nodes[0])

    assert cost is not None
    assert cost.hours == 24
    assert sum(line.per_hour for line in cost.lines) == cost.per_hour


def test_pairs_are_judged_by_accelerator_model(scene: Scene) -> None:
    table = pair_table(scene.pool, pools.endpoints_of(scene.pool))

    assert table is not None
    assert list(table.columns) == ["MI325X"]
    assert [(name, cells[0].verdict) for name, cells in table.rows] == [
        ("H100-NVL", "compatible_with")
    ]


def test_search_finds_nodes_serials_pools_plans_and_routers(scene: Scene) -> None:
    def found(text: str) -> set[str]:
        return {hit.name for hit in control.search(scene.operator, text)}

    assert found("GPU-07") == {"gpu-07"}
    assert found("gpu-11-05") == {"gpu-11"}
    assert found("granite") == {"granite-chat"}
    assert "CP-0046" in found("cp-0046")
    assert found("router-a") == {"router-a"}
    assert found("nothing") == set()


def test_people_of_a_tenant_find_nothing_of_the_fleet(scene: Scene) -> None:
    ben = scene.tenant_user

    assert control.search(ben, "g") == []
    assert list(control.operations_for(ben)) == []
    assert list(control.audit_entries_for(ben)) == []
    assert list(fleet.nodes_for(ben)) == []
    assert list(pools.pools_for(ben)) == []
    assert list(changes.plans_for(ben)) == []
    assert changes.board(ben) == []
    assert overview.capacity(ben).accelerators.delivered == 0
    assert overview.utilisation_by_vendor(ben) == []
    assert overview.open_alerts(ben) == []
    assert overview.routers_for(ben) == []


def test_requests_are_counted_from_the_hour_of_a_time_on(scene: Scene) -> None:
    requests, failed = pools.requests_since(datetime.now(UTC) - timedelta(hours=2), pool="none")

    assert (requests, failed) == (0, 0)
