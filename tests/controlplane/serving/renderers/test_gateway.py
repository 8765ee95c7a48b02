"""A pool's way in: what a Gateway sends requests to, and what maintenance may take away."""

import pytest

from controlplane.serving.renderers import _gateway
from controlplane.serving.renderers.base import (
    GatewayReference,
    PickerReference,
    Ports,
    RenderRefusedError,
)
from tests.controlplane.serving.renderers.groups import kinds, make_group, make_layout, make_pair

PICKER = PickerReference(name="llama-epp")
GATEWAY = GatewayReference(name="inference-gateway", namespace="gateways", hostnames=("a.example",))


def test_an_inference_pool_chooses_the_pools_pods_and_names_its_picker() -> None:
    pool = _gateway.inference_pool(make_layout(), PICKER)

    assert pool["apiVersion"] == "inference.networking.k8s.io/v1"
    assert pool["spec"]["selector"] == {"matchLabels": {"consort.dev/pool": "llama"}}
    assert pool["spec"]["endpointPickerRef"] == {
        "group": "", "kind": "Service", "name": "llama-epp", "port": {"number": 9002},
        "failureMode": "FailClose",
    }  # fmt: skip


def test_a_route_sends_to_the_pool_and_sets_no_limit_to_answers() -> None:
    *_, pool, route = _gateway.shared_manifests(make_layout(picker=PICKER, gateway=GATEWAY))

    (rule,) = route["spec"]["rules"]
    assert rule["backendRefs"][0]["name"] == pool["metadata"]["name"]
    assert rule["timeouts"] == {"request": "0s"}
    assert route["spec"]["hostnames"] == ["a.example"]


def test_a_gateway_without_a_picker_is_refused_with_the_field() -> None:
    with pytest.raises(RenderRefusedError) as refusal:
        _gateway.shared_manifests(make_layout(gateway=GATEWAY))

    assert refusal.value.field == "picker"


def test_two_ports_in_one_inference_pool_are_refused() -> None:
    groups = make_group(), make_group(name="gpu-2-0", ports=Ports(http=8001))

    with pytest.raises(RenderRefusedError, match="all engines must use one"):
        _gateway.inference_pool(make_layout(*groups), PICKER)


def test_each_role_has_a_budget_of_its_own() -> None:
    manifests = _gateway.shared_manifests(make_layout(*make_pair()))

    budgets = [one for one in manifests if one["kind"] == "PodDisruptionBudget"]
    roles = [one["spec"]["selector"]["matchLabels"]["llm-d.ai/role"] for one in budgets]
    assert roles == ["decode", "prefill"]
    assert kinds(manifests)[0] == "Service"
