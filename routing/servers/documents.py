"""The pool documents that a router has loaded: swap, last good copy on disk, who may ask what."""

import hashlib
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from routing.core.bodies.wire import Turns
from routing.core.document import (
    EndpointSpec,
    KeySpec,
    ModelSpec,
    PoolDocument,
)
from routing.core.openai import ExactPrompt
from routing.core.rewriting import RewriteRules
from routing.engines import sglang, vllm
from routing.engines.base import Engine
from routing.pool.router import PoolRouter
from routing.servers import clock
from routing.servers.origin import Origin
from routing.servers.shelf import Drained, Shelf, document_sha256

logger = logging.getLogger(__name__)

ENGINES: dict[str, Engine] = {engine.slug: engine for engine in (vllm.ENGINE, sglang.ENGINE)}
DEFAULT_BODY_BYTES = 32 * 1024 * 1024


class KeyRefusedError(Exception):
    """A request without a usable key; `code` is OpenAI's word for it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint of a document with what a driver needs to reach it."""

    spec: EndpointSpec
    origin: Origin
    engine: Engine


class PoolReader(Protocol):
    """Knows the tokens of a pool's prompts."""

    def read(
        self,
        path: str,
        body: bytes,
        turns: Turns | None,
        *,
        adapter: str | None,
        salt: str | None,
    ) -> ExactPrompt:
        """Keys of a checked body; what cannot be told is marked degraded."""


@dataclass(slots=True, kw_only=True)
class LoadedPool:
    """One pool in service."""

    document: PoolDocument
    router: PoolRouter
    sha256: str
    since: float
    """Unix time of the swap."""
    endpoints: dict[str, Endpoint]
    models: dict[str, ModelSpec]
    rewrites: RewriteRules = field(default_factory=RewriteRules)
    reader: "PoolReader | None" = None
    """Reads prompts as token ids, where the document wants that."""
    salts: dict[str, str] = field(default_factory=dict)
    """`cache_salt` of the tenants that have one."""
    running: int = 0
    """Requests inside the router."""
    drained: Drained = field(default_factory=set)
    """(id, instance) taken out by hand; holds until the instance changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a key opens: pools with the key's entry in each."""

    grants: tuple[tuple[LoadedPool, KeySpec], ...]

    def pool_of(self, model: str) -> tuple[LoadedPool, KeySpec] | None:
        """The first pool, by name, that serves a model to this key.

        A pool that knows the name comes before one that takes every name. What a key may ask for is
        what its holder asks, not what a rule makes of it.
        """
        usable = [
            (pool, key) for pool, key in self.grants if key.models is None or model in key.models
        ]
        for pool, key in usable:
            if model in pool.models or model in pool.rewrites.named:
                return pool, key
        return next(((pool, key) for pool, key in usable if pool.rewrites.every), None)

    def models(self) -> list[tuple[LoadedPool, ModelSpec]]:
        """Every model that the key may use, and the names that become one."""
        return [
            (pool, model)
            for pool, key in self.grants
            for model in (*pool.document.models, *pool.rewrites.aliases)
            if key.models is None or model.name in key.models
        ]


class Directory:
    """All loaded pools. `apply` is the way in; a refused document changes nothing.

    Without a folder nothing is kept: a supervisor has the documents and hands them to `install`.
    """

    def __init__(self, folder: Path | None, *, router_name: str) -> None:
        self.pools: dict[str, LoadedPool] = {}
        self.body_bytes = DEFAULT_BODY_BYTES
        self.on_change: Callable[[], None] = _nothing
        """Called after each swap."""
        self._shelf = None if folder is None else Shelf(folder)
        self._router_name = router_name
        self._observes = False
        self._keys: dict[str, list[tuple[LoadedPool, KeySpec]]] = {}
        self._unlimited: dict[str, Access] = {}
        """What keys open that never expire."""

    def load_kept(self) -> None:
        """Load the last good document of each pool, and which endpoints were drained by hand."""
        if self._shelf:
            self._shelf.load()
            for kept in self._shelf.kept.values():
                self._swap(kept.document, self._shelf.drained)
        self._index()

    def apply(self, raw: bytes) -> LoadedPool:
        """Validate a document whole, keep it on disk and swap it in.

        The same document again is accepted. Raises DocumentError or VersionNotNewerError.
        """
        if self._shelf is None:
            raise ValueError("Documents of this process come from its supervisor.")
        document, is_in_force = self._shelf.check(raw)
        if is_in_force:
            return self.pools[document.pool]
        self._shelf.keep(document)
        return self.install(document, drained=self._shelf.drained)

    def install(self, document: PoolDocument, *, drained: Drained) -> LoadedPool:
        """Swap a validated document in; `drained` are the endpoints drained by hand."""
        pool = self._swap(document, drained)
        self._index()
        self.on_change()
        return pool

    def observe(self) -> None:
        """Look on while somebody else's gateway chooses: shadow policies are asked about that."""
        self._observes = True
        for pool in self.pools.values():
            pool.router.shadows.observe()

    def drain(self, endpoint_id: str) -> list[LoadedPool]:
        """Give an endpoint no further work, in each pool, until its instance changes."""
        if self._shelf:
            self._shelf.drain(endpoint_id)
        touched = []
        for pool in self.pools.values():
            endpoint = pool.endpoints.get(endpoint_id)
            if endpoint:
                pool.drained.add((endpoint_id, endpoint.spec.instance))
                _serve(pool, _with_drained(pool.document, pool.drained))
                touched.append(pool)
        if touched:
            self.on_change()
        return touched

    def access(self, secret: bytes, *, now: float) -> Access:
        """Look up an inference key; `now` is Unix time. Raises KeyRefusedError."""
        if not secret:
            raise KeyRefusedError(
                "missing_api_key",
                "The request has no API key. Send it as 'Authorization: Bearer KEY'.",
            )
        # Keys are random, so a fast hash is enough; documents hold no plain key.
        digest = hashlib.sha256(secret).hexdigest()
        whole = self._unlimited.get(digest)
        if whole is not None:
            return whole
        grants = self._keys.get(digest)
        if not grants:
            raise KeyRefusedError("invalid_api_key", "The API key is not known here.")
        valid = tuple(
            (pool, key) for pool, key in grants if key.expires_at is None or key.expires_at > now
        )
        if not valid:
            raise KeyRefusedError("expired_api_key", "The API key has expired.")
        return Access(grants=valid)

    def _swap(self, document: PoolDocument, drained: Drained) -> LoadedPool:
        pool = self.pools.get(document.pool)
        if pool is None:
            router = PoolRouter(
                document,
                seed=self._seed(document.pool),
                now=clock.monotonic(),
                id_prefix=f"{secrets.token_hex(8)}-",
            )
            pool = LoadedPool(
                document=document,
                router=router,
                sha256="",
                since=0.0,
                endpoints={},
                models={},
            )
            self.pools[document.pool] = pool
            if self._observes:
                router.shadows.observe()
        alive = {(endpoint.id, endpoint.instance) for endpoint in document.endpoints}
        pool.drained = drained & alive
        pool.sha256 = document_sha256(document)
        pool.since = clock.unix_now()
        _serve(pool, _with_drained(document, pool.drained))
        return pool

    def _seed(self, pool: str) -> int:
        """Equal for equal names, different between routers, so that ties fall apart."""
        digest = hashlib.sha256(f"{self._router_name}/{pool}".encode()).digest()
        return int.from_bytes(digest[:8], "little")

    def _index(self) -> None:
        keys: dict[str, list[tuple[LoadedPool, KeySpec]]] = {}
        for _, pool in sorted(self.pools.items()):
            for key in pool.document.keys:
                keys.setdefault(key.sha256, []).append((pool, key))
        self._keys = keys
        self._unlimited = {
            digest: Access(grants=tuple(grants))
            for digest, grants in keys.items()
            if all(key.expires_at is None for _, key in grants)
        }
        sizes = [pool.document.limits.body_bytes for pool in self.pools.values()]
        self.body_bytes = max(sizes, default=DEFAULT_BODY_BYTES)


def _nothing() -> None:
    """Nobody listens."""


def _with_drained(document: PoolDocument, drained: Drained) -> PoolDocument:
    if not drained:
        return document
    endpoints = tuple(
        msgspec.structs.replace(endpoint, state="draining")
        if (endpoint.id, endpoint.instance) in drained
        else endpoint
        for endpoint in document.endpoints
    )
    return msgspec.structs.replace(document, endpoints=endpoints)


def _serve(pool: LoadedPool, document: PoolDocument) -> None:
    """Let a pool serve a document, in one step between two requests."""
    pool.router.apply(document, now=clock.monotonic())
    pool.document = document
    pool.endpoints = {
        spec.id: Endpoint(spec=spec, origin=Origin.of(spec.url), engine=ENGINES[spec.engine])
        for spec in document.endpoints
    }
    pool.models = {model.name: model for model in document.models}
    pool.rewrites = RewriteRules.of(document)
    pool.salts = {spec.tenant: spec.cache_salt for spec in document.tenants if spec.cache_salt}
