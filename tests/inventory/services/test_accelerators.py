"""Single devices: cordon, replace, add, move, retire, serials."""

from collections.abc import Callable

import pytest

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from inventory import services
from inventory.errors import (
    AcceleratorTransitionError,
    OtherVendorError,
    SerialInUseError,
    SlotTakenError,
)
from inventory.models import Accelerator
from tests.factories import make_ben, make_olga
from tests.inventory.factories import make_model, make_node

pytestmark = pytest.mark.django_db


def test_a_device_is_cordoned_and_comes_back() -> None:
    device, olga = make_node().accelerators.get(slot=1), make_olga()
    ask = {"accelerator_id": device.pk, "reason": "ECC", "actor": olga}

    assert services.cordon_accelerator(**ask).state == "cordoned"
    with pytest.raises(AcceleratorTransitionError):
        services.cordon_accelerator(**ask)
    assert services.uncordon_accelerator(**ask).state == "ready"


def test_a_replaced_device_is_another_row_in_the_same_slot() -> None:
    old = make_node().accelerators.get(slot=1)

    fresh = services.replace_accelerator(
        accelerator_id=old.pk, serial="NEW", reason="broken", actor=make_olga()
    )

    old.refresh_from_db()
    assert (old.state, old.retired_at is not None) == ("retired", True)
    assert (fresh.node_id, fresh.slot, fresh.serial, fresh.model_id) == (
        old.node_id, 1, "NEW", old.model_id,
    )  # fmt: skip
    assert (fresh.health, fresh.health_reason) == ("unknown", "never-observed")
    actions = AuditEntry.objects.filter(object_id=str(old.node_id)).values_list("action", flat=True)
    assert sorted(actions) == ["accelerator.added", "accelerator.retired"]


def test_a_serial_that_is_in_use_stops_the_whole_replacement() -> None:
    node = make_node()
    old, sister = node.accelerators.order_by("slot")

    with pytest.raises(SerialInUseError):
        services.replace_accelerator(
            accelerator_id=old.pk, serial=sister.serial, reason="typo", actor=make_olga()
        )

    old.refresh_from_db()
    assert old.state == "ready"
    assert node.accelerators.count() == 2


def test_a_device_is_added_to_a_free_slot_of_its_vendor_only() -> None:
    node, olga = make_node(), make_olga()
    amd, foreign = make_model(), make_model(slug="nvidia-l4", vendor="nvidia", name="L4")
    ask = {"node_id": node.pk, "serial": "", "reason": "spare", "actor": olga}

    with pytest.raises(SlotTakenError, match="Slot 0"):
        services.add_accelerator(slot=0, model=amd, **ask)
    with pytest.raises(OtherVendorError, match="nvidia-l4 is of nvidia"):
        services.add_accelerator(slot=2, model=foreign, **ask)
    assert services.add_accelerator(slot=2, model=amd, **ask).slot == 2


def test_two_devices_change_places() -> None:
    node = make_node()
    first, second = node.accelerators.order_by("slot")

    services.move_accelerator(accelerator_id=first.pk, slot=1, reason="seen", actor=make_olga())

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.slot, second.slot) == (1, 0)


def test_a_device_moves_to_a_free_slot() -> None:
    device = make_node().accelerators.get(slot=1)

    services.move_accelerator(accelerator_id=device.pk, slot=7, reason="seen", actor=make_olga())

    device.refresh_from_db()
    assert device.slot == 7


def test_a_retired_device_frees_slot_and_serial_and_stays_retired() -> None:
    device, olga = make_node().accelerators.get(slot=0), make_olga()
    ask = {"accelerator_id": device.pk, "reason": "gone", "actor": olga}

    services.retire_accelerator(**ask)
    services.retire_accelerator(**ask)
    again = services.add_accelerator(
        node_id=device.node_id, slot=0, model=device.model, serial=device.serial, reason="back",
        actor=olga,
    )  # fmt: skip

    assert again.pk != device.pk


def test_a_serial_is_written_down_once() -> None:
    first, second = make_node().accelerators.order_by("slot")
    ask = {"accelerator_id": first.pk, "reason": "label", "actor": make_olga()}

    with pytest.raises(SerialInUseError):
        services.write_serial(serial=second.serial, **ask)
    assert services.write_serial(serial="S-1", **ask).serial == "S-1"


def test_ben_changes_no_device() -> None:
    device, ben = make_node().accelerators.get(slot=0), make_ben()

    for step in (services.cordon_accelerator, services.retire_accelerator):
        with pytest.raises(NotPermittedError):
            step(accelerator_id=device.pk, reason="fun", actor=ben)


@pytest.mark.django_db(transaction=True)
def test_of_six_replacements_one_happens(at_the_same_time: Callable[..., list[str]]) -> None:
    device, olga = make_node().accelerators.get(slot=0), make_olga()

    outcomes = at_the_same_time(
        6, services.replace_accelerator, accelerator_id=device.pk, serial="NEW", reason="broken",
        actor=olga,
    )  # fmt: skip

    assert outcomes == ["Accelerator"] + ["AcceleratorTransitionError"] * 5
    assert Accelerator.objects.filter(serial="NEW").count() == 1
