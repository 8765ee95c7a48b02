"""Engines that somebody else runs."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.serving import services
from controlplane.serving.errors import StaticEngineRefusedError
from controlplane.serving.models import ChangePlan, Endpoint
from tests.controlplane.serving.boundary import Boundary
from tests.controlplane.serving.factories import (
    accelerators_of,
    make_applying,
    make_fleet_node,
    make_pool,
)
from tests.factories import make_admin

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def engine() -> Iterator[Boundary]:
    completion = b'{"choices":[{"text":"ready"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}'
    answers = {
        "/v1/models": b'{"data":[{"id":"granite-4.1-8b"}]}', "/v1/completions": completion,
        "/health": b"", "/metrics": b"process_start_time_seconds 1.5\n",
    }  # fmt: skip
    server = Boundary(lambda _method, path, *_: (200, answers[path]))
    yield server
    server.close()


def test_a_registered_engine_gets_a_role_by_a_plan_and_is_routed_to(engine: Boundary) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1, kind="static")
    services.register_static_engine(
        pool_id=pool.pk, accelerator_id=accelerators_of(node)[0].pk, url=engine.url,
        actor=make_admin(),
    )  # fmt: skip
    plan = make_applying(pool, node, role="both")

    deadline = time.monotonic() + 30
    while plan.state == ChangePlan.State.APPLYING and time.monotonic() < deadline:
        services.reconcile_pool(pool_id=pool.pk, patience_seconds=0.5)
        plan.refresh_from_db()

    assert plan.state == "succeeded", plan.outcome
    endpoint = Endpoint.objects.get(state="ready")
    assert (endpoint.url, endpoint.pid) == (engine.url, None)
    latest = pool.documents.order_by("-version").first()
    assert latest is not None
    assert engine.url in latest.content


@pytest.mark.parametrize(
    ("kind", "url", "sentence"),
    [
        ("local", "http://127.0.0.1:9000", "in a cluster of kind local"),
        ("static", "ftp://x", "an address is http://host:port"),
        ("static", "http://127.0.0.1:9000/v1", "an address is http://host:port"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused(kind: str, url: str, sentence: str) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1, kind=kind)
    wish: dict[str, Any] = {
        "pool_id": pool.pk, "accelerator_id": accelerators_of(node)[0].pk, "url": url,
        "actor": make_admin(),
    }  # fmt: skip

    with pytest.raises(StaticEngineRefusedError, match=sentence):
        services.register_static_engine(**wish)
