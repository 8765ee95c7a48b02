"""Pool documents from plain values."""

import dataclasses
from decimal import Decimal
from typing import Any

import pytest

from controlplane.serving import documents
from controlplane.serving.documents import EndpointFacts, KeyFacts, PoolFacts
from routing.core.document import DocumentError, SpeedPrior, encode_document, parse_document

SPEED = SpeedPrior(
    prefill_tokens_per_second=10_000, step_seconds=0.006, step_seconds_per_sequence=1e-5,
    step_seconds_per_context_token=1e-8, kv_bytes_per_token=163_840,
)  # fmt: skip


def endpoint(**overrides: Any) -> EndpointFacts:
    values = {
        "id": "gpu-1-0", "url": "http://127.0.0.1:9000", "instance": "abc", "engine": "simulated",
        "role": "both", "draining": False, "vendor": "amd", "speed_class": "amd-mi325x/granite",
        "node": "gpu-1", "site": "seoul", "jurisdiction": "KR", "kv_capacity_tokens": 1000,
        "block_size_tokens": 16, "max_model_len": 4096, "kv_contract": {"engine": "vllm"},
        "price_per_hour": Decimal("2.34567"),
    }  # fmt: skip
    return EndpointFacts(**values | overrides)


def pool(**overrides: Any) -> PoolFacts:
    values = {
        "slug": "granite", "role_mode": "disaggregated", "currency": "USD", "model": "granite",
        "revision": None, "max_model_len": 4096, "policy": "consort", "policy_parameters": {},
        "ramp_seconds": 5.0, "speed_classes": {"amd-mi325x/granite": SPEED},
        "endpoints": [endpoint()], "keys": [], "tenants": {},
    }  # fmt: skip
    return PoolFacts(**values | overrides)


def test_a_document_is_one_that_a_router_takes() -> None:
    key = KeyFacts(
        id="k", sha256="a" * 64, tenant="ana", project="p", models=["granite"], expires_at=None
    )

    document = documents.build(pool(keys=[key], tenants={"ana": ["KR"]}))

    assert parse_document(encode_document(document)) == document
    assert document.endpoints[0].price_per_hour == "2.3457"
    assert document.endpoints[0].engine == "vllm"
    assert document.keys[0].models == ("granite",)
    assert document.tenants[0].jurisdictions == ("KR",)


def test_the_order_of_rows_does_not_matter() -> None:
    first, second = endpoint(), endpoint(id="gpu-1-1", url="http://127.0.0.1:9001")

    one = documents.build(pool(endpoints=[first, second]))
    other = documents.build(pool(endpoints=[second, first]))

    assert documents.sha256(one) == documents.sha256(other)


@pytest.mark.parametrize(
    "change",
    [
        {"policy": "random"},
        {"endpoints": [endpoint(draining=True)]},
        {"endpoints": [endpoint(instance="def")]},
        {"endpoints": []},
        {"policy_parameters": {"money_weight": 1.0}},
        {"slo_tpot_seconds": 0.08},
        {"admission": {"queue_seconds": 5}},
    ],
)
def test_what_routers_must_know_changes_the_hash(change: dict[str, Any]) -> None:
    before = documents.build(pool())

    after = documents.build(dataclasses.replace(pool(), **change))

    assert documents.sha256(before) != documents.sha256(after)


def test_publishing_changes_version_author_and_time_only() -> None:
    body = documents.build(pool())

    document = documents.published(body, version=7, author="olga", created_at="2026-01-01")

    assert (document.version, document.author) == (7, "olga")
    assert document.endpoints == body.endpoints


@pytest.mark.parametrize(
    ("facts", "pointer"),
    [
        (pool(endpoints=[endpoint(speed_class="other")]), "/endpoints/0/speed_class"),
        (pool(role_mode="unified", endpoints=[endpoint(role="decode")]), "/endpoints/0/role"),
        (pool(endpoints=[endpoint(url="ftp://x")]), "/endpoints/0/url"),
        (pool(policy="fastest"), "/policy"),
        (pool(policy_parameters={"speed": 1}), "/policy/parameters/speed"),
        (pool(slo_ttft_seconds=0.0), "/slo/ttft_seconds"),
        (pool(slo_tpot_seconds=float("nan")), "/slo/tpot_seconds"),
        (pool(admission={"queue_requests": -1}), "/admission/queue_requests"),
        (pool(admission={"queue_request": 1}), "/admission/queue_request"),
        (pool(admission={"bands": [{"priority": 0, "share": 1}]}), "/admission/bands/0/share"),
    ],
)
def test_what_a_router_would_refuse_is_refused_here_with_the_pointer(
    facts: PoolFacts, pointer: str
) -> None:
    with pytest.raises(DocumentError) as refused:
        documents.build(facts)

    assert refused.value.pointer == pointer


def test_what_is_recorded_stands_in_the_document() -> None:
    recording = {"sample_rate": 0.5, "shadow_policies": ["llm-d-weighted"]}

    document = documents.build(pool(recording=recording))

    assert document.recording.sample_rate == 0.5
    assert document.recording.shadow_policies == ("llm-d-weighted",)


@pytest.mark.parametrize("wrong", [{"sample_rate": 2}, {"colour": 1}, {"shadow_policies": ["no"]}])
def test_a_recording_that_is_not_allowed_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DocumentError, match=r"\.") as caught:
        documents.recording_of(wrong)

    assert caught.value.pointer == "/recording"


def test_targets_of_a_pool_are_targets_of_its_requests() -> None:
    stated = documents.build(pool(slo_ttft_seconds=1.5, slo_tpot_seconds=0.06))
    silent = documents.build(pool())

    assert (stated.slo.ttft_seconds, stated.slo.tpot_seconds) == (1.5, 0.06)
    assert (silent.slo.ttft_seconds, silent.slo.tpot_seconds) == (None, None)


@pytest.mark.lesson("W27")
def test_requests_wait_under_consort_without_anybody_having_said_so() -> None:
    document = documents.build(pool())

    assert document.admission.queue_requests == documents.WAITING_REQUESTS
    assert document.admission.queue_seconds == 30.0


@pytest.mark.parametrize(
    ("policy", "stated", "waiting"),
    [
        ("consort", {"queue_requests": 0}, 0),
        ("consort", {"queue_seconds": 5}, documents.WAITING_REQUESTS),
        ("random", {}, 0),
        ("random", {"queue_requests": 7}, 7),
    ],
)
def test_peers_run_as_published_unless_somebody_says_otherwise(
    policy: str, stated: dict[str, Any], waiting: int
) -> None:
    assert documents.admission_of(policy, stated).queue_requests == waiting


def test_a_misspelt_rule_of_waiting_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(DocumentError, match="Did you mean 'evict_sheddable'") as refused:
        documents.admission_of("consort", {"evict_shedable": True})

    assert "queue_seconds" in refused.value.allowed
