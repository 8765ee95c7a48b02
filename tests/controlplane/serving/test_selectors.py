"""Reads of serving: what is true of a pool, and nothing for people of a tenant."""

from typing import Any

import pytest
from django.db.models import QuerySet

from controlplane.serving import selectors
from inventory.models import Accelerator
from tests.controlplane.serving.factories import (
    accelerators_of,
    make_assigned,
    make_draft,
    make_fleet_node,
    make_pool,
)
from tests.controlplane.serving.rows import make_endpoint
from tests.factories import make_ben, make_olga

pytestmark = pytest.mark.django_db

FOR_VIEWER: list[Any] = [
    selectors.assignments_for_viewer, selectors.endpoints_for_viewer,
    selectors.models_for_viewer, selectors.plans_for_viewer, selectors.pools_for_viewer,
    selectors.waves_for_viewer, selectors.workloads_for_viewer,
]  # fmt: skip


@pytest.mark.parametrize("selector", FOR_VIEWER, ids=lambda function: function.__name__)
def test_olga_sees_the_fleet_and_ben_nothing_of_it(selector: Any) -> None:
    pool, node = make_pool(), make_fleet_node()
    make_assigned(pool, node)
    make_endpoint(pool=pool)

    seen: QuerySet[Any] = selector(make_olga())

    assert seen.exists()
    assert not selector(make_ben()).exists()


def test_documents_routers_and_pushes_are_not_bens_either() -> None:
    ben = make_ben()

    for selector in (
        selectors.documents_for_viewer, selectors.routers_for_viewer, selectors.pushes_for_viewer,
    ):  # fmt: skip
        assert not selector(ben).exists()


def test_a_node_and_single_accelerators_are_put_together_without_retired_ones() -> None:
    node, other = make_fleet_node(), make_fleet_node()
    gone, kept = accelerators_of(node)
    gone.state, gone.retired_at = Accelerator.State.RETIRED, gone.created_at
    gone.save()
    single = accelerators_of(other)[1]

    found = selectors.accelerators_of(
        node_ids=[node.pk], accelerator_ids=[single.pk, kept.pk, gone.pk]
    )

    assert set(found) == {kept, single}


def test_the_state_of_a_pool_is_equal_until_something_that_matters_changes() -> None:
    pool, node = make_pool(), make_fleet_node()
    ids = [str(accelerator.pk) for accelerator in accelerators_of(node)]
    before = selectors.pool_state(pool, ids)

    make_draft(pool, node)
    same = selectors.pool_state(pool, ids)
    make_assigned(pool, node)
    other = selectors.pool_state(pool, ids)

    assert before == same
    assert before["ledger"] != other["ledger"]
    assert selectors.serving_count(pool) == 2
