"""From a pool, an accelerator and a role to the engine that should run there."""

from typing import Any

import pytest

from controlplane.serving.deployments import (
    desired_spec,
    engine_name,
    engine_request,
    workload_name,
)
from controlplane.serving.renderers.base import RenderRefusedError
from inventory.models import Accelerator
from tests.controlplane.serving.clusters import make_container_pool
from tests.controlplane.serving.factories import accelerators_of, make_fleet_node, make_pool
from tests.inventory.factories import make_cluster

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("hostname", "name"),
    [("gpu-1", "gpu-1-3"), ("GPU 1.Site_A", "gpu-1.site-a-3"), ("-x-", "x-3")],
)
def test_a_name_has_only_letters_that_hosts_and_routers_take(hostname: str, name: str) -> None:
    assert workload_name(hostname, 3) == name


def test_equal_wishes_are_equal_specs_and_another_role_is_another_one() -> None:
    pool, accelerator = make_pool(), accelerators_of(make_fleet_node())[0]

    first, again = (desired_spec(pool, accelerator, role="prefill") for _ in range(2))
    other = desired_spec(pool, accelerator, role="decode")

    assert first == again
    assert first["spec_hash"] != other["spec_hash"]


def test_a_real_engine_gets_a_side_channel_of_its_own() -> None:
    accelerators = accelerators_of(make_fleet_node())
    simulated, real = make_pool(), make_pool(engine="vllm")

    ports = [engine_request(real, one, role="prefill").side_channel_port for one in accelerators]

    assert ports == [5600, 5601]
    assert engine_request(simulated, accelerators[0], role="both").side_channel_port is None


def on_kubernetes(slug: str = "amd-mi325x") -> Accelerator:
    cluster = make_cluster(kind="kubernetes", slug="kr1", namespace="llm")
    return accelerators_of(make_fleet_node(slug, cluster=cluster, hostname="gpu-1"))[1]


def test_an_engine_in_a_cluster_is_an_object_pinned_to_its_node() -> None:
    pool, accelerator = make_container_pool(), on_kubernetes()

    desired = desired_spec(pool, accelerator, role="decode")

    [manifest] = desired["manifests"]
    meta, spec = manifest["metadata"], manifest["spec"]
    assert (manifest["kind"], meta["namespace"]) == ("Deployment", "llm")
    assert meta["labels"]["consort.dev/workload"] == engine_name(accelerator) == "gpu-1-1.kr1"
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    pod = spec["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "gpu-1"}
    [container] = pod["containers"]
    assert container["resources"]["limits"] == {"amd.com/gpu": "1"}
    words = container["command"]
    assert (words[words.index("--host") + 1], words[words.index("--port") + 1]) == (
        "$(POD_IP)", "8000"
    )  # fmt: skip
    template = spec["template"]["metadata"]["annotations"]
    assert template == {"consort.dev/spec-hash": desired["spec_hash"]}


def test_the_hash_covers_the_objects_and_not_the_order_of_asking() -> None:
    accelerator = on_kubernetes()
    pool, larger = make_container_pool(), make_container_pool(containers={"memory_mib": 4096})

    first, again = (desired_spec(pool, accelerator, role="both") for _ in range(2))
    other = desired_spec(larger, accelerator, role="both")

    assert first == again
    assert first["argv"] == other["argv"]
    assert first["spec_hash"] != other["spec_hash"]


def test_a_container_sees_only_its_device_so_nothing_chooses_one() -> None:
    pool = make_container_pool(engine="vllm")

    desired = desired_spec(pool, on_kubernetes("nvidia-h100-nvl"), role="both")

    [container] = desired["manifests"][0]["spec"]["template"]["spec"]["containers"]
    assert "CUDA_VISIBLE_DEVICES" not in {row["name"] for row in container["env"]}


def test_a_pool_without_an_image_for_the_vendor_is_refused_with_the_field() -> None:
    pool = make_pool()

    with pytest.raises(RenderRefusedError, match=r"containers\.images\.amd"):
        desired_spec(pool, on_kubernetes(), role="both")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"autoscaled": True}, "An autoscaler owns the number"),
        ({"span": {"nodes": 2, "worker_arguments": ["--headless"]}}, "span several nodes"),
    ],
)
def test_a_pool_that_somebody_else_counts_or_places_is_refused(
    settings: dict[str, Any], words: str
) -> None:
    pool = make_container_pool(containers=settings)

    with pytest.raises(RenderRefusedError, match=words):
        desired_spec(pool, on_kubernetes(), role="both")


def test_an_engine_of_this_machine_has_no_objects() -> None:
    accelerator = accelerators_of(make_fleet_node())[0]

    assert desired_spec(make_pool(), accelerator, role="both")["manifests"] == []
    assert engine_name(accelerator) == f"{accelerator.node.hostname}-0"


def test_an_engine_in_a_pod_looks_for_the_model_where_the_volume_is_mounted() -> None:
    files = {"kind": "pvc", "source": "weights", "mount_path": "/weights"}
    pool = make_pool(
        engine="vllm",
        containers={"images": {"amd": "registry.example/vllm:1"}, "files": files},
    )
    accelerator = accelerators_of(make_fleet_node(kind="kubernetes"))[0]

    desired = desired_spec(pool, accelerator, role="both")

    assert "/weights" in desired["argv"]
    pod = desired["manifests"][-1]["spec"]["template"]["spec"]
    assert {"name": "model", "mountPath": "/weights", "readOnly": True} in pod["containers"][0][
        "volumeMounts"
    ]


@pytest.mark.parametrize("is_on", [False, True])
def test_engines_of_this_machine_publish_cache_events_only_where_that_is_allowed(
    settings: Any, is_on: bool
) -> None:
    settings.LOCAL_KV_EVENTS = is_on
    [_first, second] = accelerators_of(make_fleet_node(accelerators=2))

    argv = desired_spec(make_pool(engine="vllm"), second, role="both")["argv"]

    assert any("tcp://*:15559" in word for word in argv) == is_on
