"""A sidecar in the loop of a test, before scripted engines."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from routing.core.document import Limits
from routing.engines import vllm
from routing.servers.faces.sidecar import Sidecar, SidecarOptions
from routing.servers.origin import Origin
from tests.routing.servers.client import Answer, request
from tests.routing.servers.scripted import (
    CHAT,
    Engine,
    answers,
)

TICKET = {"do_remote_prefill": True, "remote_prefill_cached_tokens": 5, "remote_host": "p"}
NAMED = "x-prefiller-host-port"


class Pod:
    """A sidecar in this loop, its decode engine `d`, and prefill engines elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engines: dict[str, Engine] = {}
        self.sidecar: Sidecar | None = None

    async def engine(self, name: str, script: Callable[..., Any] = answers) -> Engine:
        self.engines[name] = engine = Engine(name, script)
        await engine.start()
        return engine

    async def start(self, **options: Any) -> None:
        listed = self.folder / "prefillers"
        lines = [self.at(name) for name in self.engines if name != "d"]
        listed.write_text("\n".join([*lines, "127.0.0.1:1"]))
        defaults: dict[str, Any] = {
            "engine": Origin("127.0.0.1", self.engines["d"].port),
            "kind": vllm.ENGINE,
            "prefillers": listed,
            "drain_seconds": 0.2,
            "limits": Limits(first_token_timeout_seconds=5.0, stall_timeout_seconds=5.0),
        }
        self.sidecar = Sidecar(SidecarOptions(**defaults | options))
        await self.sidecar.start()

    async def stop(self) -> None:
        if self.sidecar:
            await self.sidecar.stop()
        for engine in self.engines.values():
            await engine.stop()

    def at(self, name: str) -> str:
        return f"127.0.0.1:{self.engines[name].port}"

    @property
    def port(self) -> int:
        assert self.sidecar is not None
        return self.sidecar.port

    async def ask(
        self, body: Any, *, by: str | None = None, path: str = CHAT, **headers: str
    ) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if by is not None:
            named[NAMED] = by
        return await request(self.port, "POST", path, body, headers=named)
