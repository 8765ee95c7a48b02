"""Manifests that an API server would refuse are refused by the fake, with the field's path."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kubernetes.fake.api import Api, Call
from tests.kubernetes.fake.cluster import FakeCluster
from tests.kubernetes.fake.errors import ApiError
from tests.kubernetes.fake.kinds import kind_of
from tests.kubernetes.fake.patches import MERGE, patched
from tests.kubernetes.fake.quantities import amount
from tests.kubernetes.test_controllers import deployment

pytestmark = pytest.mark.fake_only
Object = dict[str, Any]
DEPLOYMENT = kind_of("apps/v1", "Deployment")


def spec_of(item: Object) -> Object:
    spec: Object = item["spec"]["template"]["spec"]
    return spec


def container_of(item: Object) -> Object:
    container: Object = spec_of(item)["containers"][0]
    return container


@pytest.fixture
def api(cluster: FakeCluster) -> Api:
    return cluster.api


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        pytest.param(
            lambda d: container_of(d).update(name="Server_1"),
            "spec.template.spec.containers[0].name",
            id="a-container-name-is-a-label",
        ),
        pytest.param(
            lambda d: container_of(d).update(image=""),
            "spec.template.spec.containers[0].image",
            id="an-image-is-required",
        ),
        pytest.param(
            lambda d: container_of(d)["ports"][0].update(containerPort=70000),
            "spec.template.spec.containers[0].ports[0].containerPort",
            id="a-port-is-at-most-65535",
        ),
        pytest.param(
            lambda d: container_of(d)["ports"][0].update(name="a-name-of-16-chr"),
            "spec.template.spec.containers[0].ports[0].name",
            id="a-port-name-has-at-most-15-characters",
        ),
        pytest.param(
            lambda d: container_of(d).update(volumeMounts=[{"name": "shm", "mountPath": "/x"}]),
            "spec.template.spec.containers[0].volumeMounts[0].name",
            id="a-mount-names-a-volume",
        ),
        pytest.param(
            lambda d: container_of(d).update(resources={"claims": [{"name": "gpu"}]}),
            "spec.template.spec.containers[0].resources.claims[0]",
            id="a-claim-is-listed-by-the-pod",
        ),
        pytest.param(
            lambda d: container_of(d)["resources"].update(limits={"nvidia.com/gpu": "500m"}),
            "spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]",
            id="devices-are-whole",
        ),
        pytest.param(
            lambda d: container_of(d)["resources"].update(requests={"memory": "lots"}),
            "spec.template.spec.containers[0].resources.requests[memory]",
            id="an-amount-is-a-quantity",
        ),
        pytest.param(
            lambda d: spec_of(d).update(nodeSelector={"a": "no spaces"}),
            "spec.template.spec.nodeSelector",
            id="a-selectors-value-is-a-label-value",
        ),
        pytest.param(
            lambda d: spec_of(d).update(terminationGracePeriodSeconds=-1),
            "spec.template.spec.terminationGracePeriodSeconds",
            id="grace-is-not-negative",
        ),
        pytest.param(
            lambda d: d["spec"].update(replicas=-1), "spec.replicas", id="replicas-not-negative"
        ),
        pytest.param(
            lambda d: d["spec"].update(strategy={"type": "Recreate", "rollingUpdate": {}}) or
            d["spec"]["strategy"].update(rollingUpdate={"maxSurge": 1}),
            "spec.strategy.rollingUpdate",
            id="recreate-takes-no-rolling-update",
        ),
        pytest.param(
            lambda d: d["metadata"].update(labels={"consort.dev/pool": "x" * 64}),
            "metadata.labels",
            id="a-label-has-at-most-63-characters",
        ),
        pytest.param(
            lambda d: d["metadata"].update(name="engine_1"),
            "metadata.name",
            id="a-name-is-a-subdomain",
        ),
    ],
)  # fmt: skip
def test_a_bad_deployment_is_refused_with_the_path_of_the_field(
    cluster: FakeCluster, spoil: Callable[[Object], Any], field: str
) -> None:
    space = cluster.namespace()
    body = deployment(space)
    spoil(body)

    with pytest.raises(ApiError) as refused:
        cluster.create(body)

    assert refused.value.status == 422
    assert field in [cause["field"] for cause in refused.value.details["causes"]]


def test_a_pod_template_inside_a_custom_object_has_the_fields_of_a_pod(
    cluster: FakeCluster,
) -> None:
    space = cluster.namespace()
    container = {"name": "engine", "image": "vllm:1", "port": 8000}
    template = {"spec": {"containers": [container]}}
    meta = {"name": "large", "namespace": space}
    kind = kind_of("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": meta,
        "spec": {"leaderWorkerTemplate": {"workerTemplate": template}},
    }

    with pytest.raises(ApiError) as refused:
        cluster.api.create(kind, space, body, Call("consort", strict=True))

    path = "spec.leaderWorkerTemplate.workerTemplate.spec.containers[0].port"
    assert (refused.value.status, path in refused.value.message) == (400, True)


def test_a_selector_cannot_change(cluster: FakeCluster) -> None:
    space = cluster.namespace()
    cluster.create(deployment(space))

    def other_selector(item: Object) -> None:
        item["spec"]["selector"]["matchLabels"] = {"app": "other"}
        item["spec"]["template"]["metadata"]["labels"] = {"app": "other"}

    with pytest.raises(ApiError) as refused:
        cluster.change("apps/v1", "Deployment", "engine", other_selector, namespace=space)

    assert [c["field"] for c in refused.value.details["causes"]] == ["spec.selector"]


def test_a_dry_run_refuses_and_completes_as_a_write_would(cluster: FakeCluster, api: Api) -> None:
    space = cluster.namespace()

    made = api.create(DEPLOYMENT, space, deployment(space), Call("consort", dry_run=True))

    assert made["spec"]["progressDeadlineSeconds"] == 600
    assert cluster.all("apps/v1", "Deployment", space) == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 70_000) | st.text("ab-/", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "spec", "replicas", "containers"]), inner)
    ),
    max_leaves=6,
)


@given(json_values)
def test_an_odd_spec_is_refused_and_never_breaks_the_server(spec: Any) -> None:
    assert status_of_create(deployment("default") | {"spec": copy.deepcopy(spec)}) in range(
        400, 500
    )


@given(json_values, json_values)
def test_a_merge_patch_applied_twice_is_applied_once(live: Any, patch: Any) -> None:
    item, change = {"spec": live}, {"spec": patch}

    once = patched(item, change, MERGE)

    assert patched(once, change, MERGE) == once


@pytest.mark.parametrize(
    ("text", "number"),
    [("500m", "0.5"), ("64Gi", str(64 * 2**30)), ("8", "8"), ("1e3", "1000"), ("2k", "2000")],
)
def test_quantities_are_numbers(text: str, number: str) -> None:
    assert amount(text) == amount(number)


@pytest.mark.parametrize("text", ["", "lots", "5Xi", "--1"])
def test_what_is_no_quantity_is_none(text: str) -> None:
    assert amount(text) is None


def status_of_create(body: Object) -> int:
    """What a server that has only the namespace `default` answers."""
    api = Api()
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    api.create(kind_of("v1", "Namespace"), "", space)
    try:
        api.create(DEPLOYMENT, "default", body)
    except ApiError as error:
        return error.status
    return 201
