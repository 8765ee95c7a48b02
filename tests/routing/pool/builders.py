"""Valid parts of a pool for tests; keyword arguments override any field."""

import json
from typing import Any

from routing.core.document import PoolDocument, parse_document
from routing.core.openai import parse_request
from routing.core.request import InferenceRequest
from routing.pool.router import PoolRouter

SPEED = {
    "prefill_tokens_per_second": 20_000.0,
    "step_seconds": 6.0e-3,
    "step_seconds_per_sequence": 5.0e-5,
    "step_seconds_per_context_token": 8.0e-8,
    "kv_bytes_per_token": 163_840,
}
CONTRACT = {
    "engine": "vllm",
    "engine_version": "0.32",
    "connector": "nixl",
    "connector_version": "1",
    "transport": "nixl",
    "model_revision": "r1",
    "kv_dtype": "bf16",
    "block_size_tokens": 16,
    "layout": "HND",
    "kv_heads": 8,
    "head_size": 128,
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "attention_backend": "FLASH_ATTN",
    "fabric": "roce-a",
    "transfer_bytes_per_second": 12.5e9,
}


def endpoint_dict(name: str, **overrides: Any) -> dict[str, Any]:
    """One endpoint of the document, as JSON would have it."""
    number = sum(name.encode()) % 250
    return {
        "id": name,
        "url": f"http://10.0.{number}.1:{8000 + len(name)}",
        "instance": "1",
        "engine": "vllm",
        "role": "both",
        "vendor": "nvidia",
        "speed_class": "fast",
        "node": f"node-of-{name}",
        "site": "seoul-1",
        "jurisdiction": "KR",
        "kv_capacity_tokens": 380_000,
        "block_size_tokens": 16,
        "kv_contract": dict(CONTRACT),
    } | overrides


def document_dict(*endpoints: dict[str, Any], **overrides: Any) -> dict[str, Any]:
    """A whole document; URLs are made unique by position."""
    for position, endpoint in enumerate(endpoints):
        endpoint["url"] = f"http://10.0.0.{position}:8000"
    return {
        "pool": "chat",
        "version": 1,
        "author": "olga",
        "created_at": "2026-11-30T00:00:00Z",
        "role_mode": "disaggregated",
        "models": [{"name": "granite", "max_model_len": 9216}],
        "endpoints": list(endpoints),
        "speed_classes": {"fast": dict(SPEED), "slow": SPEED | {"step_seconds": 18.0e-3}},
    } | overrides


def make_document(*endpoints: dict[str, Any], **overrides: Any) -> PoolDocument:
    """A valid document of these endpoints."""
    return parse_document(json.dumps(document_dict(*endpoints, **overrides)).encode())


def make_router(*endpoints: dict[str, Any], **overrides: Any) -> PoolRouter:
    """A router that has just read its first document, at time 0."""
    return PoolRouter(make_document(*endpoints, **overrides), seed=7, now=0.0)


def make_request(
    text: str = "hello " * 1000, *, max_tokens: int = 100, **overrides: Any
) -> InferenceRequest:
    """A chat request of tenant `tenant-a` for the model `granite`."""
    body = {
        "model": overrides.get("model", "granite"),
        "max_tokens": max_tokens,
        "n": overrides.pop("n", 1),
        "messages": [{"role": "user", "content": text}],
    }
    identity = make_document(endpoint_dict("a")).prompt_identity
    values: dict[str, Any] = {
        "id": "request-1",
        "path": "/v1/chat/completions",
        "model": "granite",
        "tenant": "tenant-a",
        "project": "project-a",
        "key_id": "key-a",
        "parsed": parse_request(
            "/v1/chat/completions", json.dumps(body).encode(), identity=identity
        ),
        "arrived_at": 0.0,
    }
    return InferenceRequest(**(values | overrides))


def serve(router: PoolRouter, request: InferenceRequest, *, now: float) -> str:
    """One whole request; returns its destination."""
    decision = router.decide(request, now=now)
    lease = router.begin(request, decision, now=now)
    router.first_token(lease, now=now + 0.1)
    router.end(
        lease,
        now=now + 0.5,
        outcome="ok",
        prompt_tokens=request.parsed.prompt_tokens,
        cached_tokens=0,
        completion_tokens=50,
    )
    assert decision.destination is not None
    return decision.destination


def crowd(router: PoolRouter, count: int) -> None:
    """Sequences in flight at whatever answers, so that a local prompt would stall them."""
    for turn in range(count):
        request = make_request(f"{turn} crowd " * 20, max_tokens=1000, id=f"crowd-{turn}")
        decision = router.decide(request, now=0.0, policy="least-requests")
        lease = router.begin(request, decision, now=0.0)
        router.first_token(lease, now=0.0)
