"""Delivered ⊇ healthy, reserved ⊇ active; stale and unknown are neither healthy nor failed."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from inventory import selectors, services
from inventory.models import Node
from inventory.models.words import Health
from inventory.selectors.capacity import Counts
from tests.factories import make_ben, make_olga
from tests.inventory.factories import found_node, make_model, make_node


def observed(accelerators: int = 2, **changes: object) -> Node:
    node = make_node(accelerators=accelerators, **changes)
    services.record_observation(cluster_id=node.cluster_id, found=found_node(node))
    return node


@pytest.mark.django_db
def test_counts_by_vendor_for_accelerators_and_nodes() -> None:
    observed(2)
    unseen = make_node(accelerators=4, model=make_model(slug="nvidia-l4", vendor="nvidia"))

    amd, nvidia = selectors.capacity(make_olga())

    assert (dict(amd.key), amd.accelerators.healthy, amd.nodes.healthy) == ({"vendor": "amd"}, 2, 1)
    assert (nvidia.accelerators.delivered, nvidia.accelerators.unknown) == (4, 4)
    assert (nvidia.nodes.delivered, nvidia.nodes.healthy) == (1, 0)
    assert nvidia.oldest_observation is None
    assert unseen.vendor == "nvidia"


@pytest.mark.django_db
def test_reserved_and_active_come_from_the_caller_and_stay_inside_delivered() -> None:
    node = observed(3)
    first, second, _third = node.accelerators.order_by("slot").values_list("pk", flat=True)

    (group,) = selectors.capacity(
        make_olga(), reserved={first, second, uuid4()}, active={first, uuid4()}
    )

    counts = group.accelerators
    assert (counts.reserved, counts.active, counts.healthy_not_reserved) == (2, 1, 1)
    assert (group.nodes.reserved, group.nodes.active) == (1, 1)


@pytest.mark.django_db
def test_reserved_but_not_healthy_has_its_own_number() -> None:
    node = make_node(accelerators=2)
    ids = set(node.accelerators.values_list("pk", flat=True))

    (group,) = selectors.capacity(make_olga(), reserved=ids)

    assert (group.accelerators.reserved_not_healthy, group.nodes.reserved_not_healthy) == (2, 1)


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["planned", "provisioning", "retired"])
def test_what_was_not_handed_over_or_is_retired_does_not_count(state: str) -> None:
    values = {"retired_at": timezone.now()} if state == "retired" else {}
    make_node(state=state, **values)

    assert selectors.capacity(make_olga()) == []


@pytest.mark.django_db
def test_an_old_observation_counts_as_unknown() -> None:
    observed(2)

    (group,) = selectors.capacity(make_olga(), now=timezone.now() + timedelta(minutes=11))

    assert (group.accelerators.healthy, group.accelerators.unknown) == (0, 2)


@pytest.mark.django_db
def test_groups_by_role_use_the_roles_of_the_caller() -> None:
    node = observed(2)
    first, second = node.accelerators.order_by("slot").values_list("pk", flat=True)

    groups = selectors.capacity(
        make_olga(), group_by=("model", "role"), roles={first: "prefill"}, reserved={first}
    )

    assert [dict(group.key) for group in groups] == [
        {"model": "amd-mi325x", "role": ""}, {"model": "amd-mi325x", "role": "prefill"},
    ]  # fmt: skip
    assert second not in {first}


@pytest.mark.django_db
def test_ben_has_no_capacity_and_it_is_one_query() -> None:
    observed(2)
    ben, olga = make_ben(), make_olga()

    assert selectors.capacity(ben) == []
    with CaptureQueriesContext(connection) as queries:
        selectors.capacity(olga, group_by=("site", "cluster", "vendor", "model"))
    assert len(queries) == 1


@given(st.lists(st.tuples(st.sampled_from(Health.values), st.booleans(), st.booleans())))
def test_the_counts_nest_and_sum_whatever_comes(devices: list[tuple[str, bool, bool]]) -> None:
    counts = Counts()

    for health, reserved, active in devices:
        counts.add(health=health, reserved=reserved, active=active)

    parts = counts.healthy + counts.degraded + counts.failed + counts.unknown
    assert parts == counts.delivered == len(devices)
    assert counts.active <= counts.reserved <= counts.delivered
    assert counts.healthy - counts.healthy_not_reserved == (
        counts.reserved - counts.reserved_not_healthy
    )
