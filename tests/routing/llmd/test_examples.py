"""Configurations of the kinds that llm-d's guides show, written anew: each loads, and what has no
counterpart here is named with what is done instead.

The kinds are those of the llm-d Router repository (`deploy/config`) and of llm-d's guides, read in
November 2026; names and values are our own.
"""

from pathlib import Path

import msgspec
import pytest
import yaml

from routing.llmd.conversion import Report, convert
from routing.llmd.reading import read, write
from tests.routing.pool.builders import endpoint_dict, make_request, make_router

FOLDER = Path(__file__).parent / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.yaml"))

NOTHING: set[str] = set()
WITHOUT_COUNTERPART = {
    "approximate-prefix": NOTHING,
    "bursts": {"burst-prefix-cache-producer"},
    "context-length": {"token-producer"},
    "encode-stage": {
        "always-disagg-multimodal-decider",
        "mm-embeddings-cache-producer",
        "mm-embeddings-cache-scorer",
        "encode-filter",
        "encode",
    },
    "fairness-of-programs": {
        "agent-identity",
        "program-aware-fairness",
        "concurrency-detector",
        "defaultPriorityBand",
        "saturationDetector",
    },
    "first-gateway-extension": {"saturationDetector", "dataLayer"},
    "flow-control": {
        "round-robin-fairness-policy",
        "fcfs-ordering-policy",
        "concurrency-detector",
        "priority-holdback-policy",
        "usageLimitPolicyPluginRef",
        "saturationDetector",
    },
    "hashes-from-outside": {"prefixHashSource"},
    "label-selector": NOTHING,
    "lora": NOTHING,
    "no-hit-lru": NOTHING,
    "precise-prefix": {"token-producer", "endpoint-notification-source", "dataLayer"},
    "precise-prefix-old-group": {"dp-rank-header-handler"},
    "predicted-latency": {"predicted-latency-producer", "latency-slo-admitter"},
    "prefill-decode": NOTHING,
    "prefill-decode-old": NOTHING,
    "programs-on-pods": {
        "utilization-detector",
        "thunder-agent",
        "defaultPriorityBand",
        "saturationDetector",
    },
    "session-affinity": NOTHING,
    "without-kubernetes": {"file-discovery", "dataLayer"},
}


def text(name: str) -> str:
    return (FOLDER / f"{name}.yaml").read_text()


def converted(name: str) -> Report:
    return convert(text(name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_loads_and_says_what_has_no_counterpart(name: str) -> None:
    unmapped = converted(name).unmapped

    assert {note.subject for note in unmapped} == WITHOUT_COUNTERPART[name]
    assert all(note.pointer and note.message for note in unmapped)


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_written_back_as_it_was_read(name: str) -> None:
    assert yaml.safe_load(write(read(text(name)))) == yaml.safe_load(text(name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_router_decides_by_it(name: str) -> None:
    policy = converted(name).policy
    has_pairs = {profile.name for profile in policy.profiles} == {"prefill", "decode"}
    roles = ("prefill", "decode") if has_pairs else ("both", "both")
    labels = {"tier": "fast", "accelerator": "h200", "llm-d.ai/context-length-range": "0-100000"}
    endpoints = [
        endpoint_dict(f"e{place}", role=role, labels=labels) for place, role in enumerate(roles)
    ]
    router = make_router(*endpoints, policy=msgspec.to_builtins(policy))

    assert router.decide(make_request(), now=1.0).destination is not None
