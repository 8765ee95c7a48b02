"""Cost per hour, and the price per accelerator that routers get."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from controlplane.finance import selectors
from inventory.models import Accelerator, Node
from tests.controlplane.finance.rows import HOUR, make_asset_cost
from tests.controlplane.telemetry.rows import make_node

pytestmark = pytest.mark.django_db


def test_cost_of_a_node_is_shared_by_its_accelerators() -> None:
    node, unpriced = make_node(accelerators=2), make_node()
    make_asset_cost(node)

    costs = selectors.cost_per_hour(at=HOUR)

    assert set(costs) == {node.pk}
    cost = costs[node.pk]
    assert cost.total == cost.depreciation + cost.finance + Decimal("0.26")
    assert cost.per_accelerator == (cost.total / 2).quantize(Decimal("1e-12"))
    assert (cost.currency, cost.power_source, cost.evidence) == ("USD", "estimated", "estimate")
    assert unpriced.pk not in costs


def test_a_card_that_was_replaced_this_hour_has_no_share_any_more() -> None:
    node = make_node(accelerators=2)
    make_asset_cost(node)
    old = node.accelerators.get(slot=0)
    moment = HOUR + timedelta(minutes=5)
    Accelerator.objects.filter(pk=old.pk).update(state="retired", retired_at=moment)
    Accelerator.objects.create(node=node, model=old.model, vendor=old.vendor, slot=0)

    cost = selectors.cost_per_hour(at=HOUR + timedelta(minutes=10))[node.pk]

    assert cost.accelerators == 2
    assert cost.power == Decimal("0.26")


def test_a_retired_node_costs_nothing_more() -> None:
    node = make_node()
    make_asset_cost(node)
    Node.objects.filter(pk=node.pk).update(state="retired", retired_at=HOUR)

    assert selectors.cost_per_hour(at=HOUR + timedelta(minutes=10)) == {}


def test_prices_of_accelerators_are_unknown_where_nobody_said() -> None:
    node, unpriced = make_node(accelerators=2), make_node(accelerators=1)
    make_asset_cost(node)
    ours = list(node.accelerators.values_list("pk", flat=True))
    nobodys, stranger = unpriced.accelerators.get().pk, uuid4()

    prices = selectors.accelerator_prices([*ours, nobodys, stranger])

    assert prices[nobodys] is None
    assert prices[stranger] is None
    assert prices[ours[0]] == prices[ours[1]]
    assert (prices[ours[0]] or 0) > Decimal("0.7")


def test_queries_do_not_grow_with_the_nodes(django_assert_num_queries: Any) -> None:
    for count in (1, 8):
        for _ in range(count):
            make_asset_cost(make_node())
        with django_assert_num_queries(6):
            selectors.cost_per_hour(at=HOUR)
