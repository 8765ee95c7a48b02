"""A tiny engine that does what a test says, and the router under test beside it."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from routing.core.document import PoolDocument, encode_document
from routing.servers.app import Router, RouterOptions
from routing.servers.http import Connection, HttpServer
from routing.servers.http_parts import HttpRequest, ServerLimits
from tests.routing.servers.client import Answer, request

ADMIN_TOKEN = "admin-token-of-the-tests"
SECRET = "sk-of-ana"
MODEL = "granite-4.1-8b"
CHAT = "/v1/chat/completions"
USAGE = {"prompt_tokens": 12, "total_tokens": 15, "completion_tokens": 3}

Script = Callable[["Engine", HttpRequest, Connection], Awaitable[None]]


@dataclass
class Engine:
    """One scripted engine; `requests` are the bodies it got."""

    name: str
    script: Script
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[bytes, bytes]] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request of this engine was cancelled by its client."""
    scrapes: int = 0
    port: int = 0
    reads_json: bool = True

    async def start(self) -> None:
        self.server = HttpServer(
            self._handle,
            limits=ServerLimits(body_bytes=lambda: 2**26),
            error_body=lambda status, text: text.encode(),
        )
        self.port = await self.server.start("127.0.0.1", self.port)

    async def stop(self) -> None:
        await self.server.stop(drain_seconds=0)

    async def _handle(self, received: HttpRequest, client: Connection) -> None:
        if received.path == "/metrics":
            self.scrapes += 1
            client.respond(200, b'#\nvllm:num_requests_running{engine="0"} 1.0\n')
            return
        self.requests.append(json.loads(received.body) if self.reads_json else {})
        self.headers.append(received.headers)
        try:
            await self.script(self, received, client)
        except asyncio.CancelledError:
            self.gone.set()
            raise


async def answers(engine: Engine, received: HttpRequest, client: Connection) -> None:
    """The good engine: streams or not, both NIXL legs."""
    body = json.loads(received.body)
    params = body.get("kv_transfer_params") or {}
    if params.get("do_remote_decode"):
        ticket = {"do_remote_prefill": True, "remote_prefill_cached_tokens": 5, "remote_host": "p"}
        client.respond(200, answer_body(engine.name, kv_transfer_params=ticket))
    elif body.get("stream"):
        await stream(engine, received, client)
    else:
        client.respond(200, answer_body(engine.name))


def answer_body(name: str, **more: Any) -> bytes:
    details = {"prompt_tokens_details": {"cached_tokens": 11}}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": MODEL,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": f"from {name}"},
                    "finish_reason": "stop",
                }
            ],
            "usage": USAGE | details,
        }
        | more
    ).encode()


def event(delta: dict[str, Any] | None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": None}]
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": MODEL,
        "choices": choices,
    }
    return b"data: " + json.dumps(chunk | more, separators=(",", ":")).encode() + b"\n\n"


async def stream(engine: Engine, received: HttpRequest, client: Connection) -> None:
    """Role, three words, usage if it was asked for, the end."""
    client.open_stream(200, content_type=b"text/event-stream; charset=utf-8")
    client.send(event({"role": "assistant", "content": ""}))
    for word in ("from", engine.name, "."):
        await asyncio.sleep(0)
        client.send(event({"content": word}))
    options = json.loads(received.body).get("stream_options") or {}
    if options.get("include_usage"):
        details = {"prompt_tokens_details": {"cached_tokens": 11}}
        client.send(event(None, usage=USAGE | details))
    client.send(b"data: [DONE]\n\n")
    client.close_stream()


def status_script(status: int, body: bytes = b'{"error":{"message":"scripted"}}') -> Script:
    async def respond(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.respond(status, body)

    return respond


async def hangs(engine: Engine, received: HttpRequest, client: Connection) -> None:
    """Takes the request and never answers."""
    await asyncio.sleep(600)


async def cuts(engine: Engine, received: HttpRequest, client: Connection) -> None:
    """Closes the connection without a byte."""
    client.abort()


async def cuts_in_the_middle(engine: Engine, received: HttpRequest, client: Connection) -> None:
    """Sends two events of a stream and dies."""
    client.open_stream(200, content_type=b"text/event-stream")
    client.send(event({"role": "assistant", "content": ""}))
    client.send(event({"content": "half"}))
    await asyncio.sleep(0.02)
    client.abort()


async def streams_forever(engine: Engine, received: HttpRequest, client: Connection) -> None:
    """One event every few milliseconds, without end."""
    client.open_stream(200, content_type=b"text/event-stream")
    while True:
        client.send(event({"content": "again"}))
        await asyncio.sleep(0.005)


def document(
    engines: list[Engine],
    *,
    version: int = 1,
    roles: dict[str, str] | None = None,
    **changes: Any,
) -> PoolDocument:
    """A pool of scripted engines with one key; `roles` makes it disaggregated."""
    contract = {
        "engine": "vllm",
        "engine_version": "0.32.0",
        "connector": "nixl",
        "connector_version": "1",
        "transport": "nixl",
        "model_revision": "r1",
        "kv_dtype": "bfloat16",
        "block_size_tokens": 16,
        "layout": "HND",
        "kv_heads": 8,
        "head_size": 128,
        "tensor_parallel": 1,
        "pipeline_parallel": 1,
        "attention_backend": "flash",
        "fabric": "f1",
        "transfer_bytes_per_second": 1e10,
    }
    endpoints = [
        {
            "id": engine.name,
            "url": f"http://127.0.0.1:{engine.port}",
            "instance": f"{engine.name}-{engine.port}",
            "engine": "vllm",
            "role": (roles or {}).get(engine.name, "both"),
            "vendor": "nvidia",
            "speed_class": "h100",
            "node": f"node-{engine.name}",
            "site": "site",
            "jurisdiction": "kr",
            "block_size_tokens": 16,
            "kv_capacity_tokens": 100_000,
            "kv_contract": contract,
        }
        for engine in engines
    ]
    fields = {
        "pool": "main",
        "version": version,
        "author": "test",
        "created_at": "2026-11-30T00:00:00Z",
        "role_mode": "disaggregated" if roles else "unified",
        "models": [{"name": MODEL, "max_model_len": 100_000}],
        "endpoints": endpoints,
        "speed_classes": {
            "h100": {
                "prefill_tokens_per_second": 20_000,
                "step_seconds": 0.01,
                "step_seconds_per_sequence": 0.0001,
                "step_seconds_per_context_token": 1e-8,
                "kv_bytes_per_token": 100_000,
            }
        },
        "policy": {"name": "round-robin"},
        "disaggregation": {"warm_up": False},
        "limits": {"attempts": 3, "first_token_timeout_seconds": 5.0, "stall_timeout_seconds": 5.0},
        "keys": [key("ana", SECRET)],
    }
    return msgspec.convert(fields | changes, PoolDocument)


def key(name: str, secret: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"key-{name}",
        "sha256": hashlib.sha256(secret.encode()).hexdigest(),
        "tenant": f"tenant-{name}",
        "project": f"project-{name}",
    } | more


def chat(**more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "Say hello."}]} | more


class Stage:
    """A router in this event loop, with its scripted engines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engines: dict[str, Engine] = {}
        self.router: Router

    async def start_router(self, **options: Any) -> None:
        self.router = Router(
            RouterOptions(
                name="r1",
                state_dir=self.folder,
                admin_token=ADMIN_TOKEN.encode(),
                drain_seconds=0.2,
                segment_seconds=0.05,
                **options,
            )
        )
        await self.router.start()

    async def stop(self) -> None:
        await self.router.stop()
        for engine in self.engines.values():
            await engine.stop()

    async def engine(self, name: str, script: Script = answers, *, port: int = 0) -> Engine:
        engine = Engine(name, script, port=port)
        await engine.start()
        self.engines[name] = engine
        return engine

    async def load(self, **changes: Any) -> None:
        """Push a document with all engines of the stage."""
        answer = await self.push(document(list(self.engines.values()), **changes))
        assert answer.status == 200, answer.body

    async def push(self, pool_document: PoolDocument | bytes) -> Answer:
        raw = pool_document if isinstance(pool_document, bytes) else encode_document(pool_document)
        return await self.admin("PUT", "/admin/pool-document", raw)

    async def admin(self, method: str, path: str, body: Any = None) -> Answer:
        headers = {"authorization": f"Bearer {ADMIN_TOKEN}"}
        return await request(self.router.admin_port, method, path, body, headers=headers)

    async def ask(
        self, body: Any, *, path: str = CHAT, secret: str = SECRET, **headers: str
    ) -> Answer:
        """One completion with a key."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await request(
            self.router.port,
            "POST",
            path,
            body,
            headers={"authorization": f"Bearer {secret}"} | named,
        )

    async def usage(self, count: int) -> list[dict[str, Any]]:
        """The first `count` usage events, once they are delivered in closed segments."""
        async with asyncio.timeout(10):
            while True:
                answer = await self.admin("GET", "/admin/usage-segments?after=0&limit=100")
                events = [
                    event for segment in answer.json["segments"] for event in segment["events"]
                ]
                if len(events) >= count:
                    return events
                await asyncio.sleep(0.02)

    @property
    def leases_open(self) -> int:
        pools = self.router.state.directory.pools.values()
        return sum(pool.router.leases_open for pool in pools)

    async def no_leases(self) -> None:
        """Wait until every lease has ended."""
        async with asyncio.timeout(5):
            while self.leases_open:
                await asyncio.sleep(0.005)
