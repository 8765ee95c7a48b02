"""What always holds in the fleet, enforced by the database."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from inventory.models import Accelerator, Finding, Node, Observation
from tests.inventory.factories import (
    make_cluster,
    make_model,
    make_node,
    make_node_type,
    make_site,
)

pytestmark = pytest.mark.django_db


def refused(constraint: str, write: Callable[..., Any], **values: Any) -> None:
    """Assert that the database refuses a write by the constraint."""
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        write(**values)


def test_a_live_hostname_is_unique_in_its_cluster_whatever_its_case() -> None:
    node = make_node(hostname="gpu-kr-01")

    refused(
        "inventory_node_live_hostname_unique",
        make_node, hostname="GPU-KR-01", cluster=node.cluster, accelerators=0,
    )  # fmt: skip
    make_node(hostname="gpu-kr-01", cluster=make_cluster(), accelerators=0)


def test_a_retired_node_frees_its_hostname() -> None:
    node = make_node(hostname="gpu-kr-01", state="retired", retired_at=timezone.now())

    again = make_node(hostname="gpu-kr-01", cluster=node.cluster, accelerators=0)

    assert again.pk != node.pk


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"state": "retired"}, id="retired-without-time"),
        pytest.param({"state": "ready", "retired_at": timezone.now()}, id="time-without-retired"),
    ],
)
def test_retired_at_is_set_exactly_when_retired(values: dict[str, Any]) -> None:
    refused("inventory_node_retired_at_iff_retired", make_node, accelerators=0, **values)
    device = make_node().accelerators.get(slot=0)
    refused(
        "inventory_accelerator_retired_at_iff_retired",
        Accelerator.objects.filter(pk=device.pk).update, **values,
    )  # fmt: skip


def test_a_slot_holds_one_live_accelerator() -> None:
    node = make_node()
    first = node.accelerators.get(slot=0)
    values = {"node": node, "model": first.model, "vendor": "amd", "slot": 0}

    refused("inventory_accelerator_live_slot_unique", Accelerator.objects.create, **values)
    Accelerator.objects.filter(pk=first.pk).update(state="retired", retired_at=timezone.now())
    Accelerator.objects.create(**values)

    assert node.accelerators.filter(slot=0).count() == 2


def test_a_live_serial_is_unique_per_vendor() -> None:
    node = make_node(accelerators=1)
    serial = node.accelerators.get().serial
    other = make_node(accelerators=1).accelerators.get()
    cousin = make_node(
        accelerators=1, model=make_model(slug="nvidia-l4", vendor="nvidia", name="L4")
    ).accelerators.get()

    refused(
        "inventory_accelerator_live_serial_unique",
        Accelerator.objects.filter(pk=other.pk).update, serial=serial,
    )  # fmt: skip
    Accelerator.objects.filter(pk=cousin.pk).update(serial=serial)


def test_serials_that_nobody_knows_do_not_collide() -> None:
    node = make_node()

    node.accelerators.update(serial="")

    assert node.accelerators.filter(serial="").count() == 2


def test_a_node_holds_accelerators_of_one_vendor() -> None:
    node = make_node(accelerators=1)
    foreign = make_model(slug="nvidia-l4", vendor="nvidia", name="L4")

    refused(
        "inventory_accelerator_vendor_of_node",
        Accelerator.objects.create, node=node, model=foreign, vendor="nvidia", slot=1,
    )  # fmt: skip
    refused(
        "inventory_accelerator_vendor_of_model",
        Accelerator.objects.create, node=node, model=foreign, vendor="amd", slot=1,
    )  # fmt: skip


def test_the_vendor_rule_has_a_sentence_for_people() -> None:
    device = make_node(accelerators=1).accelerators.get()
    device.vendor = "nvidia"

    with pytest.raises(ValidationError, match="accelerators of one vendor only"):
        device.full_clean(validate_unique=False)


@pytest.mark.parametrize(
    ("constraint", "values"),
    [
        pytest.param("inventory_node_unknown_has_reason", {"health_reason": ""}, id="no-reason"),
        pytest.param(
            "inventory_node_health_was_observed",
            {"health": "healthy", "health_reason": ""},
            id="healthy-unseen",
        ),
    ],
)
def test_health_needs_a_reason_and_an_observation(constraint: str, values: dict[str, Any]) -> None:
    node = make_node()

    refused(constraint, Node.objects.filter(pk=node.pk).update, **values)


@pytest.mark.parametrize("share", [-0.01, 1.01])
def test_utilisation_is_a_share(share: float) -> None:
    device = make_node().accelerators.get(slot=0)

    refused(
        "inventory_accelerator_utilisation_is_a_share",
        Accelerator.objects.filter(pk=device.pk).update, observed_utilisation=share,
    )  # fmt: skip


@pytest.mark.parametrize("count", [0, 65])
def test_a_node_type_has_1_to_64_accelerators(count: int) -> None:
    refused("inventory_nodetype_has_accelerators", make_node_type, accelerators=count)


def test_a_figure_is_above_zero_or_unknown() -> None:
    refused("inventory_acceleratormodel_figures_positive", make_model, slug="x", tdp_watts=0)
    assert make_model(slug="y", tdp_watts=None).tdp_watts is None


@pytest.mark.parametrize(
    ("constraint", "values"),
    [
        pytest.param("inventory_site_country_is_a_code", {"country": "kr"}, id="country"),
        pytest.param("inventory_site_pue_at_least_one", {"pue": "0.9"}, id="pue"),
        pytest.param("inventory_site_tariff_has_a_currency", {"tariff_per_kwh": 1}, id="tariff"),
        pytest.param("inventory_site_carbon_not_negative", {"carbon_grams_per_kwh": -1}, id="co2"),
    ],
)
def test_figures_of_a_site(constraint: str, values: dict[str, Any]) -> None:
    refused(constraint, make_site, **values)


def test_one_open_finding_per_difference_and_a_time_when_it_is_closed() -> None:
    node = make_node()
    seen = Observation.objects.create(
        cluster=node.cluster, node=node, hostname=node.hostname, vendor="amd", source="agent",
        seen_at=timezone.now(), content={},
    )  # fmt: skip
    values = {
        "cluster": node.cluster, "node": node, "observation": seen, "hostname": node.hostname,
        "slot": 1, "kind": "missing", "seen_at": seen.seen_at,
    }  # fmt: skip
    Finding.objects.create(**values)

    refused("inventory_finding_open_unique", Finding.objects.create, **values)
    refused(
        "inventory_finding_closed_at_iff_closed", Finding.objects.create,
        **values | {"state": "accepted", "kind": "moved"},
    )  # fmt: skip


def test_two_kubernetes_clusters_do_not_share_a_connection() -> None:
    make_cluster(kind="kubernetes", connection_reference="seoul")

    refused(
        "inventory_cluster_reference_unique",
        make_cluster, kind="kubernetes", connection_reference="seoul",
    )  # fmt: skip
    make_cluster(kind="kubernetes")
    make_cluster(kind="kubernetes")


def test_whether_a_cluster_has_a_kind_is_unknown_until_somebody_asked() -> None:
    cluster = make_cluster(kind="kubernetes")

    assert cluster.serves("apps/v1", "Deployment") is None
    cluster.kinds = [["apps/v1", "Deployment"]]
    assert cluster.serves("apps/v1", "Deployment") is True
    assert cluster.serves("apps/v1", "StatefulSet") is False
