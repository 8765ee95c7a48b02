"""Pool documents for real engines, and a router process that serves them."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from routing.core.document import PoolDocument, encode_document
from tests.e2e.vllm.engines import ADAPTERS, BLOCK_TOKENS, MODEL, MODELS, VllmEngine
from tests.routing.servers.running import ADMIN, CLIENT, router_arguments, starter
from tests.routing.servers.scripted import ADMIN_TOKEN, SECRET, key

POOL = "main"
CONTEXT_TOKENS = 4096
KV_CONTRACT = {
    "engine": "vllm",
    "engine_version": "0.32.0",
    "connector": "nixl",
    "connector_version": "1.5.2",
    "transport": "nixl",
    "model_revision": "r1",
    "kv_dtype": "bfloat16",
    "block_size_tokens": BLOCK_TOKENS,
    "layout": "HND",
    "kv_heads": 2,
    "head_size": 32,
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
    "attention_backend": "cpu",
    "fabric": "loopback",
    "transfer_bytes_per_second": 1e9,
}
SPEED = {
    "prefill_tokens_per_second": 4_000,
    "step_seconds": 0.02,
    "step_seconds_per_sequence": 0.001,
    "step_seconds_per_context_token": 1e-7,
    "kv_bytes_per_token": 512,
}
"""Guesses for a core of a busy machine; the router learns the real ones. Decode engines are said to
be slow at prompts, so that it is a pair that a prompt goes to.
"""


def document(engines: dict[str, VllmEngine], *, kv_tokens: int, **changes: Any) -> PoolDocument:
    """A pool whose prompts are known by token ids; the keys of `engines` begin with their roles."""
    fields = {
        "pool": POOL,
        "version": 1,
        "author": "test",
        "created_at": "2026-12-01T00:00:00Z",
        "role_mode": "unified",
        "models": [
            {"name": MODEL, "max_model_len": CONTEXT_TOKENS},
            *(
                {"name": name, "max_model_len": CONTEXT_TOKENS, "adapter_of": MODEL}
                for name in ADAPTERS
            ),
        ],
        "endpoints": [_endpoint(name, engine, kv_tokens) for name, engine in engines.items()],
        "speed_classes": {"core": SPEED, "decoder": SPEED | {"prefill_tokens_per_second": 40}},
        "policy": {"name": "consort"},
        "prompt_identity": {"mode": "tokens", "tokenizer": MODEL},
        "recording": {"sample_rate": 1.0},
        "limits": {"attempts": 3},
        "keys": [key("ana", SECRET, may_test=True)],
    }
    return msgspec.convert(fields | changes, PoolDocument)


def _endpoint(name: str, engine: VllmEngine, kv_tokens: int) -> dict[str, Any]:
    role = name.partition("-")[0]
    return {
        "id": name,
        "url": f"http://127.0.0.1:{engine.port}",
        "instance": f"{name}-1",
        "engine": "vllm",
        "role": role,
        "vendor": "cpu",
        "speed_class": "decoder" if role == "decode" else "core",
        "node": "here",
        "site": "here",
        "block_size_tokens": BLOCK_TOKENS,
        "kv_capacity_tokens": kv_tokens,
        "max_sequences": 8,
        "kv_contract": KV_CONTRACT,
    }


class Pool:
    """A router with one pool, and a client of it."""

    def __init__(self, client: httpx.AsyncClient, port: int, admin_port: int) -> None:
        self._client = client
        self._url = f"http://127.0.0.1:{port}"
        self._admin_url = f"http://127.0.0.1:{admin_port}/admin"

    async def push(self, wanted: PoolDocument) -> None:
        """Bring a document into force."""
        answer = await self._client.put(
            f"{self._admin_url}/pool-document", content=encode_document(wanted), headers=ADMIN
        )
        assert answer.status_code == 200, answer.text

    async def ask(self, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
        """One request as a tenant sends it."""
        return await self._client.post(self._url + path, json=body, headers=CLIENT | headers)

    async def explained(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What would happen to a request."""
        answer = await self.ask("/v1/explain", {"path": path, "body": body})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def state(self) -> dict[str, Any]:
        """The pool's part of the router's state."""
        answer = await self._client.get(f"{self._admin_url}/state", headers=ADMIN)
        return dict(answer.json()["pools"][POOL])

    async def endpoint(self, name: str) -> dict[str, Any]:
        """One endpoint's part of it."""
        found = (await self.state())["endpoints"]
        return next(one for one in found if one["id"] == name)

    async def decision(self, answer: httpx.Response) -> dict[str, Any]:
        """The record of the decision behind an answer."""
        number = answer.headers["x-consort-decision-id"]
        found = await self._client.get(f"{self._admin_url}/decisions/{number}", headers=ADMIN)
        assert found.status_code == 200, found.text
        return dict(found.json()["record"])


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Pool]:
    """A router process that knows the model's tokenizer."""
    token = folder / "token"
    token.write_text(ADMIN_TOKEN)
    async with starter() as start, httpx.AsyncClient(timeout=120) as client:
        arguments = router_arguments(folder / "state", token, "--tokenizers-dir", str(MODELS))
        router = await start(*arguments)
        yield Pool(client, router.port, router.admin_port)


async def until(
    condition: Callable[[], Awaitable[Any]], *, what: str, seconds: float = 60.0
) -> Any:
    """The first true value of the condition; fails with a sentence after a generous deadline."""
    deadline, last = time.monotonic() + seconds, None
    while time.monotonic() < deadline:
        last = await condition()
        if last:
            return last
        await asyncio.sleep(0.1)
    raise AssertionError(f"{what}: not within {seconds:.0f} s; last seen {json.dumps(last)}")
