"""The target against a cluster's API: it applies without force, and touches only its own.

The same tests run against a real cluster; those that need faults, or somebody else's writes without
HTTP, say so.
"""

import copy
from typing import Any

import pytest

from controlplane.serving.targets import target
from controlplane.serving.targets.base import (
    SeenEngine,
    TargetRefusedError,
    TargetUnavailableError,
    WantedEngine,
)
from controlplane.serving.targets.kubernetes import stamping
from inventory.kubernetes.client import ClusterClient
from inventory.services import clusters
from tests.controlplane.serving.clusters import Place
from tests.controlplane.serving.targets.kubernetes.objects import NAME, Object, manifest

pytestmark = pytest.mark.django_db(transaction=True)

KUBERNETES = target("kubernetes")
fake_only = pytest.mark.fake_only


def wanted(place: Place, *, generation: int = 1, mark: str = "ab", **spec: Any) -> WantedEngine:
    runner = manifest(**spec)
    runner["metadata"] |= {"namespace": place.namespace}
    template = runner["spec"]["template"]["spec"]
    template["containers"][0]["resources"] = {"requests": {"memory": "1Mi"}}
    runner["spec"]["selector"] = {"matchLabels": {"consort.dev/workload": NAME}}
    return WantedEngine(
        name=NAME, generation=generation, spec_hash=mark * 32, cluster=str(place.row.pk),
        pool="granite", manifests=tuple(stamping.with_hash([runner], mark * 32)),
    )  # fmt: skip


def other(place: Place) -> WantedEngine:
    """The same engine with another command."""
    engine = wanted(place, generation=2, mark="cd")
    runner = copy.deepcopy(dict(engine.manifests[0]))
    runner["spec"]["template"]["spec"]["containers"][0]["command"] = ["sglang"]
    return WantedEngine(
        name=NAME, generation=2, spec_hash="cd" * 32, cluster=engine.cluster, pool="granite",
        manifests=(runner,),
    )  # fmt: skip


def seen(engine: WantedEngine) -> SeenEngine:
    return KUBERNETES.observe([engine])[NAME]


def reading(place: Place) -> ClusterClient:
    return ClusterClient(clusters.connection_of(place.row.connection_reference))


def stored(place: Place) -> Object:
    return reading(place).get("apps/v1", "Deployment", "gpu-1-0-kr1", place.namespace)


def test_an_engine_that_nobody_made_is_absent_and_one_that_was_applied_is_asked_for(
    quiet: Place,
) -> None:
    engine = wanted(quiet)
    before = seen(engine)

    KUBERNETES.apply(engine, fencing_token=1)

    assert before.state == "absent"
    after = seen(engine)
    assert (after.state, after.asked_spec_hash, after.generation) == (
        "starting", engine.spec_hash, 1
    )  # fmt: skip
    assert not after.has_drifted
    annotations = stored(quiet)["metadata"]["annotations"]
    assert annotations["consort.dev/fencing-token"] == "1"


def test_the_same_again_changes_nothing(quiet: Place) -> None:
    engine = wanted(quiet)
    KUBERNETES.apply(engine, fencing_token=1)
    generation = stored(quiet)["metadata"]["generation"]
    version = stored(quiet)["metadata"]["resourceVersion"]

    KUBERNETES.apply(engine, fencing_token=1)

    assert stored(quiet)["metadata"]["generation"] == generation
    if not hasattr(quiet.cluster, "kubeconfig"):
        assert stored(quiet)["metadata"]["resourceVersion"] == version


def test_an_older_holder_is_fenced_off(quiet: Place) -> None:
    KUBERNETES.apply(wanted(quiet), fencing_token=8)

    with pytest.raises(TargetRefusedError, match="older than 8") as refused:
        KUBERNETES.apply(other(quiet), fencing_token=7)
    with pytest.raises(TargetRefusedError, match="older than 8"):
        KUBERNETES.delete(wanted(quiet), fencing_token=7)

    assert refused.value.fenced
    assert seen(wanted(quiet)).asked_spec_hash == "ab" * 32


def test_a_field_that_somebody_holds_is_named_with_them_and_stays(quiet: Place) -> None:
    KUBERNETES.apply(wanted(quiet), fencing_token=1)
    take_command(quiet)

    with pytest.raises(TargetRefusedError) as refused:
        KUBERNETES.apply(other(quiet), fencing_token=2)

    assert refused.value.reason == "FieldConflict"
    assert "somebody" in str(refused.value)
    assert ".command" in str(refused.value)
    container = stored(quiet)["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["theirs"]


def take_command(place: Place) -> None:
    """Somebody else writes the engine's command."""
    client = reading(place)
    body = {"spec": {"template": {"spec": {"containers": [
        stored(place)["spec"]["template"]["spec"]["containers"][0] | {"command": ["theirs"]}
    ]}}}}  # fmt: skip
    wire = client._call(
        "PATCH",
        client._path("apps/v1", "Deployment", "gpu-1-0-kr1", place.namespace),
        {"fieldManager": "somebody"},
        body,
        "application/merge-patch+json",
    )
    client._wire.read(wire)


def test_what_somebody_changed_is_drift_with_the_field_and_the_manager(quiet: Place) -> None:
    engine = wanted(quiet)
    KUBERNETES.apply(engine, fencing_token=1)
    take_command(quiet)

    found = seen(engine)

    assert found.has_drifted
    [row] = [row for row in found.conditions if row.type == "Drifted"]
    assert ".command: " in row.message
    assert '["theirs"] instead of ["vllm", "serve"]' in row.message
    assert "held by somebody" in row.message


def test_an_object_of_somebody_else_under_the_name_is_not_touched(quiet: Place) -> None:
    theirs = copy.deepcopy(dict(wanted(quiet).manifests[0]))
    theirs["metadata"]["labels"] = {"app": "theirs"}
    reading(quiet).create(theirs)

    with pytest.raises(TargetRefusedError, match="is not this engine's") as refused:
        KUBERNETES.apply(wanted(quiet), fencing_token=1)
    with pytest.raises(TargetRefusedError, match="is not this engine's"):
        KUBERNETES.delete(wanted(quiet), fencing_token=1)

    assert refused.value.reason == "NotOurs"
    assert stored(quiet)["metadata"]["labels"] == {"app": "theirs"}
    found = seen(wanted(quiet))
    assert (found.state, found.conditions[0].reason) == ("unknown", "NotOurs")


def test_an_engine_of_another_pool_is_found_before_it_is_moved(quiet: Place) -> None:
    KUBERNETES.apply(wanted(quiet), fencing_token=1)
    moved = WantedEngine(
        name=NAME, generation=2, spec_hash="cd" * 32, cluster=str(quiet.row.pk), pool="another",
        manifests=other(quiet).manifests,
    )  # fmt: skip

    assert seen(moved).asked_spec_hash == "ab" * 32


def test_a_deletion_ends_what_is_ours_and_again_is_no_error(quiet: Place) -> None:
    engine = wanted(quiet)
    KUBERNETES.apply(engine, fencing_token=1)

    KUBERNETES.delete(engine, fencing_token=2)
    quiet.cluster.until(lambda: seen(engine).state == "absent")
    KUBERNETES.delete(engine, fencing_token=2)

    assert KUBERNETES.logs(engine, size=100) == (
        "There is no Pod of this engine, so there is no output."
    )


@fake_only
def test_an_engine_with_a_finalizer_is_ending_until_somebody_lets_go(quiet: Place) -> None:
    engine = wanted(quiet)
    KUBERNETES.apply(engine, fencing_token=1)
    hold = {"metadata": {"finalizers": ["x.test/hold"]}}
    reading(quiet).merge_patch(
        "apps/v1", "Deployment", "gpu-1-0-kr1", hold, namespace=quiet.namespace
    )

    KUBERNETES.delete(engine, fencing_token=2)
    KUBERNETES.apply(engine, fencing_token=2)

    assert seen(engine).state == "ending"
    let_go = {"metadata": {"finalizers": None}}
    reading(quiet).merge_patch(
        "apps/v1", "Deployment", "gpu-1-0-kr1", let_go, namespace=quiet.namespace
    )
    quiet.cluster.settle()
    assert seen(engine).state == "absent"


@fake_only
def test_the_output_of_the_latest_pod_is_read_and_bounded(quiet: Place) -> None:
    quiet.cluster.add_node("gpu-1")
    engine = wanted(quiet)
    KUBERNETES.apply(engine, fencing_token=1)
    quiet.cluster.settle()
    [pod] = quiet.pods()
    quiet.cluster.logs[quiet.namespace, pod["metadata"]["name"]] = "x" * 500 + "\nloaded\n"

    assert KUBERNETES.logs(engine, size=8) == "\nloaded\n"


@fake_only
def test_an_object_that_changes_under_way_is_read_once_more(quiet: Place) -> None:
    KUBERNETES.apply(wanted(quiet), fencing_token=1)
    quiet.cluster.faults.answer(
        409, "the object has been modified", path="/deployments/", methods=frozenset({"PATCH"}),
        times=1, reason="Conflict",
    )  # fmt: skip

    KUBERNETES.apply(other(quiet), fencing_token=1)

    assert seen(other(quiet)).asked_spec_hash == "cd" * 32


@fake_only
def test_a_missing_namespace_is_told_in_the_clusters_words(quiet: Place) -> None:
    runner = copy.deepcopy(dict(wanted(quiet).manifests[0]))
    runner["metadata"]["namespace"] = "nowhere"
    engine = WantedEngine(
        name=NAME, generation=1, spec_hash="ab" * 32, cluster=str(quiet.row.pk), pool="granite",
        manifests=(runner,),
    )  # fmt: skip

    with pytest.raises(TargetRefusedError, match='namespaces "nowhere" not found'):
        KUBERNETES.apply(engine, fencing_token=1)


@fake_only
@pytest.mark.parametrize("status", [401, 500, 503])
def test_a_server_that_cannot_be_asked_says_nothing_of_its_engines(
    quiet: Place, status: int
) -> None:
    quiet.cluster.faults.answer(status)
    expected = TargetRefusedError if status == 401 else TargetUnavailableError

    with pytest.raises(expected, match="Cluster c1"):
        seen(wanted(quiet))


def test_nothing_rendered_is_a_refusal_and_absent() -> None:
    engine = WantedEngine(name=NAME, generation=1, spec_hash="")

    with pytest.raises(TargetRefusedError, match="Nothing was rendered"):
        KUBERNETES.apply(engine, fencing_token=1)
    KUBERNETES.delete(engine, fencing_token=1)
    assert seen(engine).state == "absent"


def test_a_cluster_that_is_gone_from_the_inventory_is_unavailable(quiet: Place) -> None:
    engine = wanted(quiet)
    lost = WantedEngine(
        name=NAME, generation=1, spec_hash="", cluster="no-id", pool="granite",
        manifests=engine.manifests,
    )  # fmt: skip

    with pytest.raises(TargetUnavailableError, match="no cluster with the id 'no-id'"):
        seen(lost)
