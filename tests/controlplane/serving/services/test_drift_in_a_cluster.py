"""What somebody changed in a cluster: shown, and put right only where the pool says so."""

from typing import Any

import pytest

from controlplane.serving import services
from controlplane.serving.models import Endpoint, Pool, Workload
from tests.controlplane.serving.clusters import Object, Place, make_container_pool
from tests.controlplane.serving.factories import make_applying
from tests.controlplane.serving.services.test_loop_in_a_cluster import run_to_the_end, told

pytestmark = [
    pytest.mark.processes, pytest.mark.fake_only, pytest.mark.django_db(transaction=True)
]  # fmt: skip


def serving(place: Place, **settings: Any) -> Pool:
    pool = make_container_pool(**settings)
    assert run_to_the_end(make_applying(pool, place.node(), role="both")).state == "succeeded"
    return pool


def change(place: Place, by: Any) -> None:
    """Somebody changes the engine's object, and no controller acts on it yet."""
    [found] = place.deployments()
    place.cluster.controllers.stop()
    place.cluster.change(
        "apps/v1", "Deployment", found["metadata"]["name"], by,
        namespace=place.namespace, manager="kubectl-edit",
    )  # fmt: skip


def take_away(item: Object) -> None:
    """Fields that nobody holds afterwards."""
    [container] = item["spec"]["template"]["spec"]["containers"]
    container["env"] = [row for row in container["env"] if row["name"] != "NODE_NAME"]
    del item["metadata"]["labels"]["llm-d.ai/model"]


def scale(item: Object) -> None:
    item["spec"]["replicas"] = 0


def run(pool: Pool) -> Workload:
    services.reconcile_pool(pool_id=pool.pk, patience_seconds=0)
    return Workload.objects.get(pool=pool)


def applies(place: Place) -> int:
    return sum(1 for write in place.cluster.writes if write.method == "PATCH")


def test_drift_is_shown_and_left_alone(place: Place) -> None:
    pool = serving(place)
    before = applies(place)
    change(place, take_away)

    workload = run(pool)

    assert told(workload, "Drifted") == ("True", "FieldsDiffer")
    [row] = [row for row in workload.conditions if row["type"] == "Drifted"]
    assert ".metadata.labels.llm-d.ai/model: nothing instead of" in row["message"]
    assert applies(place) == before


def test_a_pool_that_puts_drift_right_asks_once_more_for_what_nobody_holds(place: Place) -> None:
    pool = serving(place, self_heal=True)
    change(place, take_away)

    run(pool)
    place.cluster.controllers.start()
    workload = run(pool)

    [found] = place.deployments()
    [container] = found["spec"]["template"]["spec"]["containers"]
    assert "llm-d.ai/model" in found["metadata"]["labels"]
    assert "NODE_NAME" in [row["name"] for row in container["env"]]
    assert told(workload, "Drifted")[0] == "False"


def test_what_somebody_holds_is_asked_for_once_and_stays_theirs(place: Place) -> None:
    pool = serving(place, self_heal=True)
    before = applies(place)
    change(place, scale)

    for _ in range(3):
        workload = run(pool)

    [found] = place.deployments()
    assert found["spec"]["replicas"] == 0
    assert applies(place) == before + 1
    assert told(workload, "Applied") == ("False", "FieldConflict")
    [row] = [row for row in workload.conditions if row["type"] == "Applied"]
    assert "kubectl-edit" in row["message"]
    assert ".spec.replicas" in row["message"]
    assert Endpoint.objects.filter(state="ready").count() == 1
