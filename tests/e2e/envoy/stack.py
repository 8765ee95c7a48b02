"""Engines, a router with all its faces, and an Envoy for each way to ask it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from deploy.envoy.wiring import Address
from routing.core.document import PoolDocument
from tests.e2e.envoy.mirror import MODEL as MIRROR_MODEL
from tests.e2e.envoy.mirror import Mirror
from tests.e2e.envoy.processes import ADMIN, HERE, engine, envoy, router
from tests.routing.servers.scripted import MODEL, SECRET, Engine, answers, document, key

ADAPTER = "tuned"
MODELS = [
    {"name": MODEL, "max_model_len": 100_000},
    {"name": ADAPTER, "max_model_len": 100_000, "adapter_of": MODEL},
]
ALIAS = "assistant"
REWRITES = [{"models": [ALIAS], "targets": [{"model": MODEL}]}]
"""A name that engines do not know."""
KEYS = [key("ana", SECRET, may_test=True)]
KEY = {"authorization": f"Bearer {SECRET}"}
WAYS: dict[str, dict[str, Any]] = {
    "ext_authz": {"face": "ext_authz"},
    "ext_proc": {"face": "ext_proc"},
    "ext_proc-buffered": {"face": "ext_proc", "body_mode": "buffered", "sees_answers": True},
}
"""Ways through Envoy; beside them is the router's own port, `proxy`."""


@dataclass(frozen=True, kw_only=True)
class Gateways:
    """A whole stack."""

    urls: dict[str, str]
    """Address to send requests to, by way; `proxy` is the router's own port."""
    documents: tuple[PoolDocument, ...]
    ready: dict[str, Any]
    """Ports of the router."""
    engines: tuple[int, ...]
    """Ports of the testbed engines."""
    mirror: Mirror
    folder: Path

    def state(self) -> dict[str, Any]:
        """What the router says of itself."""
        url = f"http://{HERE}:{self.ready['admin_port']}/admin/state"
        answer: dict[str, Any] = httpx.get(url, headers=ADMIN, timeout=20).json()
        return answer


def pool_of(ports: dict[str, int], **changes: Any) -> PoolDocument:
    """A pool of engines that listen on this machine."""
    engines = [Engine(name, answers, port=port) for name, port in ports.items()]
    return document(engines, **({"keys": KEYS, "policy": {"name": "consort"}} | changes))


def picker(ready: dict[str, Any], face: str) -> Address:
    """Where a router that told its ports listens for a face."""
    return Address(HERE, ready["faces"][0][face.replace("ext_authz", "authz")])


@contextmanager
def gateways(folder: Path) -> Iterator[Gateways]:
    """The stack, started and ended."""
    with ExitStack() as stack:
        enter = stack.enter_context
        mirror = enter(Mirror())
        engines = {name: enter(engine(adapter=ADAPTER)) for name in ("a", "b")}
        documents = (
            pool_of(engines, models=MODELS, rewrites=REWRITES, limits={"unknown_paths": "pass"}),
            pool_of(
                {"m": mirror.port},
                pool="mirrors",
                models=[{"name": MIRROR_MODEL, "max_model_len": 1_000_000}],
            ),
        )
        ready = enter(router(folder / "router", *documents))
        urls = {"proxy": f"http://{HERE}:{ready['port']}"}
        for way, parts in WAYS.items():
            more = parts | {"documents": documents, "pickers": [picker(ready, parts["face"])]}
            urls[way] = enter(envoy(folder / way, **more))
        yield Gateways(
            urls=urls,
            documents=documents,
            ready=ready,
            engines=tuple(engines.values()),
            mirror=mirror,
            folder=folder,
        )
