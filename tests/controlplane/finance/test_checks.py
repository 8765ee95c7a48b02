"""The cost check of a change plan says what an hour costs before and after."""

from decimal import Decimal
from typing import Any

import pytest

from controlplane.finance.checks import check
from controlplane.serving.models import ChangePlan, Pool
from inventory.models import Accelerator
from tests.controlplane.finance.rows import HOUR, assign, make_asset_cost, make_pool
from tests.controlplane.telemetry.rows import make_node

pytestmark = pytest.mark.django_db


def item(accelerator: Accelerator, *, before: str, after: str) -> dict[str, Any]:
    return {
        "accelerator": str(accelerator.pk),
        "node": str(accelerator.node_id),
        "hostname": accelerator.node.hostname,
        "slot": accelerator.slot,
        "vendor": accelerator.vendor,
        "accelerator_model": accelerator.model.slug,
        "target": "local",
        "workload": "w",
        "from_role": before,
        "to_role": after,
    }


def plan(pool: Pool, *items: dict[str, Any]) -> ChangePlan:
    return ChangePlan(serial=1, pool=pool, diff=list(items), expires_at=HOUR)


def test_a_change_of_role_moves_the_cost_between_roles() -> None:
    node = make_node(accelerators=2)
    make_asset_cost(node)
    pool = make_pool()
    first, second = node.accelerators.order_by("slot")
    assign(pool, [first], "prefill")
    assign(pool, [second], "decode")

    result = check(plan(pool, item(first, before="prefill", after="decode")))

    assert result.verdict == "pass"
    assert result.numbers["before"] == result.numbers["after"]
    assert set(result.numbers["before_by_role"]) == {"prefill", "decode"}
    assert result.numbers["after_by_role"] == {"decode": result.numbers["after"]}
    assert result.numbers["currency"] == "USD"


def test_more_accelerators_cost_more() -> None:
    node = make_node(accelerators=2)
    make_asset_cost(node)
    pool = make_pool()
    first, second = node.accelerators.order_by("slot")
    assign(pool, [first], "both")

    result = check(plan(pool, item(second, before="", after="both")))

    before, after = Decimal(result.numbers["before"]), Decimal(result.numbers["after"])
    # Each is rounded by itself, and how depends on the days of the month.
    assert abs(after - 2 * before) <= Decimal("0.0001")
    assert abs(Decimal(result.numbers["difference"]) - before) <= Decimal("0.0001")


def test_an_unknown_cost_is_a_warning_and_not_zero_in_silence() -> None:
    node = make_node(accelerators=1)
    pool = make_pool()

    result = check(plan(pool, item(node.accelerators.get(), before="", after="both")))

    assert result.verdict == "warn"
    assert result.numbers["accelerators_without_cost"] == 1
