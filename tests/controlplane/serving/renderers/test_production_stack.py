"""vLLM production-stack: its router finds the pool's engines and runs a policy that it has."""

from dataclasses import replace

import pytest
import yaml

from controlplane.serving.renderers import renderer
from controlplane.serving.renderers.base import Manifest, PoolLayout, RenderRefusedError
from routing.core.document import Policy
from tests.controlplane.serving.renderers.golden_cases import layout_of

TOGETHER = layout_of("nvidia", "vllm", ("both",))
APART = layout_of("nvidia", "vllm", ("prefill", "decode"))
KNOWN = {
    "service_discovery", "routing_logic", "static_backends", "static_models", "static_aliases",
    "static_model_labels", "static_model_types", "prefill_model_labels", "decode_model_labels",
    "static_backend_health_checks", "k8s_port", "k8s_namespace", "k8s_label_selector",
    "session_key", "callbacks",
}  # fmt: skip
"""An unknown key makes the router refuse the whole file."""


def config_of(layout: PoolLayout) -> Manifest:
    config = renderer("production-stack").render(layout)[0]
    found: Manifest = yaml.safe_load(config["data"]["dynamic_config.yaml"])
    return found


@pytest.mark.parametrize("layout", [TOGETHER, APART], ids=["together", "apart"])
def test_only_known_keys_are_written(layout: PoolLayout) -> None:
    assert set(config_of(layout)) <= KNOWN


def test_the_router_finds_the_pods_of_the_pool() -> None:
    *_, workload = renderer("production-stack").render(TOGETHER)

    key, _, value = config_of(TOGETHER)["k8s_label_selector"].partition("=")
    assert workload["spec"]["template"]["metadata"]["labels"][key] == value


def test_prefill_and_decode_are_told_apart_by_the_models_label() -> None:
    *_, prefill, decode = renderer("production-stack").render(APART)

    config = config_of(APART)
    assert config["prefill_model_labels"] == prefill["metadata"]["labels"]["model"]
    assert config["decode_model_labels"] == decode["metadata"]["labels"]["model"]


@pytest.mark.parametrize(
    ("layout", "field"),
    [
        (replace(TOGETHER, policy=Policy(name="consort")), "policy"),
        (replace(APART, policy=Policy(name="session-hash")), "policy"),
        (layout_of("nvidia", "vllm", ("prefill",)), "role"),
    ],
)
def test_what_it_cannot_express_is_refused_with_the_field(layout: PoolLayout, field: str) -> None:
    with pytest.raises(RenderRefusedError) as refusal:
        renderer("production-stack").render(layout)

    assert refusal.value.field == field
