"""A node with an open role is neither retired nor given to repair."""

import threading

import pytest
from django.db import connection, transaction
from django.utils import timezone

from controlplane.serving.models import AssignedAccelerator, RoleAssignment
from controlplane.serving.selectors.holders import holds
from inventory.errors import NodeHeldError
from inventory.models import Accelerator
from inventory.services import cordon_node, retire_node, start_maintenance
from tests.controlplane.serving.factories import make_assigned, make_fleet_node, make_pool
from tests.factories import make_olga

pytestmark = pytest.mark.django_db


def test_a_node_with_an_open_role_is_held_and_says_by_whom() -> None:
    pool, node, olga = make_pool(), make_fleet_node(), make_olga()
    make_assigned(pool, node)
    cordon_node(node_id=node.pk, reason="fan", actor=olga)

    for step in (retire_node, start_maintenance):
        with pytest.raises(NodeHeldError, match=f"in the pool {pool.slug}"):
            step(node_id=node.pk, reason="fan", actor=olga)

    node.refresh_from_db()
    assert node.state == "cordoned"


def test_a_node_whose_roles_have_ended_is_free() -> None:
    node = make_fleet_node()
    make_assigned(make_pool(), node)
    AssignedAccelerator.objects.update(open=False)
    RoleAssignment.objects.update(valid_to=timezone.now())

    assert holds(node) == ""
    assert retire_node(node_id=node.pk, reason="sold", actor=make_olga()).state == "retired"


@pytest.mark.django_db(transaction=True)
def test_who_is_about_to_assign_the_node_is_waited_for() -> None:
    pool, node, olga = make_pool(), make_fleet_node(), make_olga()
    assigned, may_commit = threading.Event(), threading.Event()

    def assign_slowly() -> None:
        with transaction.atomic():
            list(Accelerator.objects.select_for_update(no_key=True).filter(node=node))
            make_assigned(pool, node)
            assigned.set()
            may_commit.wait(20)
        connection.close()

    worker = threading.Thread(target=assign_slowly)
    worker.start()
    assert assigned.wait(20)
    threading.Timer(0.3, may_commit.set).start()

    with pytest.raises(NodeHeldError):
        retire_node(node_id=node.pk, reason="sold", actor=olga)

    worker.join()
    node.refresh_from_db()
    assert node.state == "ready"
