"""Refusals of the database become errors with names in them."""

import pytest
from django.db import IntegrityError, transaction

from inventory.errors import SlotTakenError, UnknownModelError, UnknownVendorError
from inventory.models import Accelerator, Site
from inventory.services import placing
from tests.inventory.factories import make_model, make_node

pytestmark = pytest.mark.django_db


def test_names_that_nobody_knows_are_refused_with_those_that_are_known() -> None:
    with pytest.raises(UnknownVendorError) as refused:
        placing.require_vendor("acme")
    assert "nvidia" in refused.value.advice
    with pytest.raises(UnknownModelError, match="acme-1"):
        placing.model_named("acme-1")


def test_a_type_of_node_is_made_once() -> None:
    model = make_model()

    assert placing.node_type_for(model, 8) == placing.node_type_for(model, 8)


def test_a_taken_slot_is_named() -> None:
    device = make_node().accelerators.get(slot=0)
    twin = Accelerator(node=device.node, model=device.model, vendor="amd", slot=0)

    with (
        pytest.raises(SlotTakenError, match=f"Slot 0 of node {device.node.hostname}"),
        placing.sentences(twin),
    ):
        twin.save()


def test_the_value_that_a_unique_rule_refused_is_read_from_the_database() -> None:
    node = make_node(hostname="GPU-1")

    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        make_node(hostname="gpu-1", cluster=node.cluster, accelerators=0)

    assert placing.refused_value(refused.value) == "gpu-1"
    assert placing.refused_value(IntegrityError("disk on fire")) == ""


def test_a_refusal_that_no_rule_explains_stays_what_it_is() -> None:
    site = Site(slug="x", name="X", country="KR", jurisdiction="KR")

    with pytest.raises(IntegrityError), placing.sentences(site):
        raise IntegrityError("disk on fire")
