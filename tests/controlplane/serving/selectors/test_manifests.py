"""A pool is written as objects of a cluster from what the role ledger says."""

from typing import Any

import pytest
import yaml

from controlplane.common.errors import InvalidParameterError
from controlplane.serving import services
from controlplane.serving.errors import ManifestsRefusedError
from controlplane.serving.models import Pool
from controlplane.serving.selectors import ManifestQuestion, pool_manifests
from tests.controlplane.serving.factories import (
    make_assigned,
    make_fleet_node,
    make_pool,
)
from tests.controlplane.serving.renderers import checking
from tests.controlplane.serving.rows import make_endpoint
from tests.factories import make_olga
from tests.inventory.factories import make_cluster

pytestmark = pytest.mark.django_db

IMAGES = {vendor: f"registry.example/{vendor}:1" for vendor in ("amd", "nvidia", "intel-gaudi")}
LLMD = {"picker": "registry.example/router:1", "sidecar": "registry.example/sidecar:1"}


def make_container_pool(**containers: Any) -> Pool:
    settings = {"namespace": "llm", "images": IMAGES, "llmd": LLMD} | containers
    return make_pool(engine="vllm", policy="round-robin", containers=settings)


def export(pool: Pool, **question: str) -> list[dict[str, Any]]:
    text = pool_manifests(pool, ManifestQuestion(**question), viewer=make_olga())
    found = list(yaml.safe_load_all(text))
    for manifest in found:
        checking.check(manifest)
    return found


def deployments(manifests: list[dict[str, Any]]) -> dict[str, int]:
    return {
        one["metadata"]["name"]: one["spec"]["replicas"]
        for one in manifests
        if one["kind"] == "Deployment"
    }


def test_equal_engines_are_one_group() -> None:
    pool = make_container_pool()
    make_assigned(pool, make_fleet_node("amd-mi325x", accelerators=2), role="decode")
    make_assigned(pool, make_fleet_node("amd-mi325x", accelerators=1), role="decode")
    make_assigned(pool, make_fleet_node("nvidia-h100-nvl", accelerators=1), role="prefill")

    found = deployments(export(pool))

    assert sorted(found.values()) == [1, 3]


def test_engines_of_a_kubernetes_cluster_are_bound_to_their_nodes() -> None:
    pool = make_container_pool()
    node = make_fleet_node(kind="kubernetes", hostname="gpu-7")
    make_assigned(pool, node)

    *_, deployment = export(pool)

    pod = deployment["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "gpu-7"}
    assert pod["containers"][0]["resources"] == {"limits": {"amd.com/gpu": "1"}}


def test_engines_that_run_elsewhere_are_bound_to_no_node() -> None:
    pool = make_container_pool()
    make_assigned(pool, make_fleet_node(kind="local"))

    *_, deployment = export(pool)

    assert "nodeSelector" not in deployment["spec"]["template"]["spec"]


def test_the_engine_looks_for_the_model_where_the_volume_is() -> None:
    pool = make_container_pool(files={"kind": "pvc", "source": "weights"})
    make_assigned(pool, make_fleet_node())

    *_, deployment = export(pool)

    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert "/models" in container["command"]


@pytest.mark.parametrize("renderer", ["plain", "llm-d", "kserve", "production-stack"])
def test_every_format_writes_objects_that_an_api_server_knows(renderer: str) -> None:
    pool = make_container_pool()
    make_assigned(pool, make_fleet_node("amd-mi325x"), role="prefill")
    make_assigned(pool, make_fleet_node("amd-mi325x"), role="decode")
    policy = "round-robin" if renderer == "production-stack" else "llm-d-default"

    assert export(pool, renderer=renderer, policy="" if renderer == "plain" else policy)


def test_the_pools_own_policy_is_refused_where_the_format_has_another() -> None:
    pool = make_container_pool()
    make_assigned(pool, make_fleet_node())

    with pytest.raises(ManifestsRefusedError) as refusal:
        export(pool, renderer="llm-d")

    assert refusal.value.facts["pointer"] == "policy"
    assert "llm-d-default" in str(refusal.value)


def test_a_pool_in_two_clusters_is_written_one_at_a_time() -> None:
    pool = make_container_pool()
    one, other = (make_cluster(kind="kubernetes") for _ in range(2))
    make_assigned(pool, make_fleet_node(cluster=one, accelerators=1))
    make_assigned(pool, make_fleet_node(cluster=other, accelerators=2))

    found = deployments(export(pool, cluster=other.slug))

    assert list(found.values()) == [2]
    with pytest.raises(InvalidParameterError) as refusal:
        export(pool)
    assert one.slug in refusal.value.advice


@pytest.mark.parametrize(
    ("question", "parameter"),
    [({"renderer": "helm"}, "renderer"), ({"policy": "consort"}, "policy"),
     ({"cluster": "moon"}, "cluster")],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(question: dict[str, str], parameter: str) -> None:
    pool = make_container_pool()
    make_assigned(pool, make_fleet_node())

    with pytest.raises(InvalidParameterError) as refusal:
        export(pool, **question)

    assert refusal.value.facts["parameter"] == parameter


@pytest.mark.parametrize(
    ("containers", "pointer"),
    [({"images": {}}, "containers.images.amd"), ({"namespace": ""}, "containers.namespace")],
)
def test_what_is_missing_is_named(containers: dict[str, Any], pointer: str) -> None:
    pool = make_container_pool()
    Pool.objects.filter(pk=pool.pk).update(containers=pool.containers | containers)
    pool.refresh_from_db()
    make_assigned(pool, make_fleet_node())

    with pytest.raises(ManifestsRefusedError) as refusal:
        export(pool)

    assert refusal.value.facts["pointer"] == pointer


def test_a_pool_without_engines_has_nothing_to_write() -> None:
    with pytest.raises(ManifestsRefusedError, match="nothing to write"):
        export(make_container_pool())


def test_the_document_of_the_routers_is_the_last_one_published() -> None:
    pool = make_container_pool()
    make_assigned(pool, make_fleet_node())
    make_endpoint(pool=pool)
    services.publish_if_changed(pool_id=pool.pk)

    (secret,) = export(pool, renderer="router")

    assert secret["kind"] == "Secret"


def test_the_same_pool_is_the_same_text() -> None:
    pool, olga = make_container_pool(), make_olga()
    make_assigned(pool, make_fleet_node())

    first, again = (pool_manifests(pool, ManifestQuestion(), viewer=olga) for _ in range(2))

    assert first == again


@pytest.mark.parametrize("nodes", [1, 4])
def test_the_number_of_queries_does_not_grow_with_the_pool(
    nodes: int, django_assert_num_queries: Any
) -> None:
    pool, olga = make_container_pool(), make_olga()
    for _ in range(nodes):
        make_assigned(pool, make_fleet_node("amd-mi325x", accelerators=4))

    with django_assert_num_queries(1):
        pool_manifests(pool, ManifestQuestion(), viewer=olga)
