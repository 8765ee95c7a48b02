"""Targets come and go with the instances of endpoints."""

import pytest

from controlplane.telemetry import services
from controlplane.telemetry.models import ScrapeTarget
from inventory.models import Node
from tests.controlplane.telemetry.rows import make_node

pytestmark = pytest.mark.django_db


def engine(node: Node, instance: str, role: str = "both") -> services.EngineTarget:
    return services.EngineTarget(
        endpoint="gpu-1-0",
        instance=instance,
        metrics_url="http://127.0.0.1:9000/metrics",
        engine="vllm",
        node=node,
        accelerators=list(node.accelerators.all()[:1]),
        pool="granite",
        role=role,
        source="simulated",
    )


def test_a_restarted_endpoint_ends_the_instance_before() -> None:
    node = make_node()

    first = services.register_engine(engine(node, "a"))
    second = services.register_engine(engine(node, "b", role="decode"))

    first.refresh_from_db()
    assert not first.active
    assert first.ended_at is not None
    assert second.active
    assert [a.slot for a in second.accelerators.all()] == [0]


def test_registering_again_changes_nothing() -> None:
    node = make_node()

    rows = {services.register_engine(engine(node, "a")).pk for _ in range(2)}

    assert len(rows) == 1
    assert ScrapeTarget.objects.filter(active=True).count() == 1


def test_ending_twice_ends_once() -> None:
    services.register_engine(engine(make_node(), "a"))

    assert [services.end_engine(instance="a") for _ in range(2)] == [1, 0]


def test_an_instance_that_comes_back_is_scraped_again() -> None:
    target = engine(make_node(), "a")
    services.register_engine(target)
    services.end_engine(instance="a")

    row = services.register_engine(target)

    assert (row.active, row.ended_at) == (True, None)
