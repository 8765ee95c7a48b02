"""The pool documents that a router has loaded: swap, last good copy on disk, who may ask what."""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from routing.core.document import (
    DocumentError,
    EndpointSpec,
    KeySpec,
    ModelSpec,
    PoolDocument,
    encode_document,
    parse_document,
)
from routing.engines import vllm
from routing.engines.base import Engine
from routing.pool.router import PoolRouter
from routing.servers import clock
from routing.servers.files import write_durably
from routing.servers.upstream import Origin

logger = logging.getLogger(__name__)

# SGLang has no plugin file yet; a document that names it is refused with this list.
ENGINES: dict[str, Engine] = {vllm.ENGINE.slug: vllm.ENGINE}
DEFAULT_BODY_BYTES = 32 * 1024 * 1024


class VersionNotNewerError(Exception):
    """A document is older than, or differs from, the loaded one with the same number."""

    def __init__(self, pool: str, version: int, current: int) -> None:
        super().__init__(
            f"Version {version} of pool '{pool}' is not newer than the loaded version {current}."
        )
        self.current = current


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
    running: int = 0
    """Requests inside the router."""
    drained: set[tuple[str, str]] = field(default_factory=set)
    """(id, instance) taken out by hand; holds until the instance changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a key opens: pools with the key's entry in each."""

    grants: tuple[tuple[LoadedPool, KeySpec], ...]

    def pool_of(self, model: str) -> tuple[LoadedPool, KeySpec] | None:
        """The first pool, by name, that serves a model to this key."""
        for pool, key in self.grants:
            if model in pool.models and (key.models is None or model in key.models):
                return pool, key
        return None

    def models(self) -> list[tuple[LoadedPool, ModelSpec]]:
        """Every model that the key may use."""
        return [
            (pool, model)
            for pool, key in self.grants
            for model in pool.document.models
            if key.models is None or model.name in key.models
        ]


class Directory:
    """All loaded pools. `apply` is the only way in; a refused document changes nothing."""

    def __init__(self, folder: Path, *, router_name: str) -> None:
        self.pools: dict[str, LoadedPool] = {}
        self.body_bytes = DEFAULT_BODY_BYTES
        self.on_change: Callable[[], None] = _nothing
        """Called after each swap."""
        self._folder = folder
        self._router_name = router_name
        self._keys: dict[str, list[tuple[LoadedPool, KeySpec]]] = {}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def load_kept(self) -> None:
        """Load the last good document of each pool from disk; one that fails is logged."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                document = parse_document(path.read_bytes())
                _check_engines(document)
                self._swap(document)
            except (DocumentError, OSError) as error:
                # One pool that cannot be read must not keep the others out of service.
                pointer = getattr(error, "pointer", "")
                logger.error("%s was not loaded: %s %s", path.name, pointer, error)  # noqa: TRY400 - the message says it all
        self._index()

    def apply(self, raw: bytes) -> LoadedPool:
        """Validate a document whole, keep it on disk and swap it in.

        The same document again is accepted. Raises DocumentError or VersionNotNewerError.
        """
        document = parse_document(raw)
        _check_engines(document)
        current = self.pools.get(document.pool)
        digest = document_sha256(document)
        if current and current.sha256 == digest:
            return current
        if current and document.version <= current.document.version:
            raise VersionNotNewerError(document.pool, document.version, current.document.version)
        name = hashlib.sha256(document.pool.encode()).hexdigest()[:32]
        write_durably(self._folder / f"{name}.json", encode_document(document))
        pool = self._swap(document)
        self._index()
        self.on_change()
        return pool

    def drain(self, endpoint_id: str) -> list[LoadedPool]:
        """Give an endpoint no further work, in each pool, until its instance changes.

        The kept document does not say so: after a restart the endpoint takes work again.
        """
        touched = []
        for pool in self.pools.values():
            endpoint = pool.endpoints.get(endpoint_id)
            if endpoint:
                pool.drained.add((endpoint_id, endpoint.spec.instance))
                _serve(pool, _with_drained(pool.document, pool.drained))
                touched.append(pool)
        return touched

    def access(self, secret: bytes, *, now: float) -> Access:
        """Look up an inference key; `now` is Unix time. Raises KeyRefusedError."""
        if not secret:
            raise KeyRefusedError(
                "missing_api_key",
                "The request has no API key. Send it as 'Authorization: Bearer KEY'.",
            )
        # Keys are random, so a fast hash is enough; documents hold no plain key.
        grants = self._keys.get(hashlib.sha256(secret).hexdigest())
        if not grants:
            raise KeyRefusedError("invalid_api_key", "The API key is not known here.")
        valid = tuple(
            (pool, key) for pool, key in grants if key.expires_at is None or key.expires_at > now
        )
        if not valid:
            raise KeyRefusedError("expired_api_key", "The API key has expired.")
        return Access(grants=valid)

    def _swap(self, document: PoolDocument) -> LoadedPool:
        pool = self.pools.get(document.pool)
        if pool is None:
            router = PoolRouter(document, seed=self._seed(document.pool), now=clock.monotonic())
            pool = LoadedPool(
                document=document,
                router=router,
                sha256="",
                since=0.0,
                endpoints={},
                models={},
            )
            self.pools[document.pool] = pool
        alive = {(endpoint.id, endpoint.instance) for endpoint in document.endpoints}
        pool.drained &= alive
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
        sizes = [pool.document.limits.body_bytes for pool in self.pools.values()]
        self.body_bytes = max(sizes, default=DEFAULT_BODY_BYTES)


def _nothing() -> None:
    """Nobody listens."""


def document_sha256(document: PoolDocument) -> str:
    """SHA-256 of the document's canonical bytes, as hexadecimal digits."""
    return hashlib.sha256(encode_document(document)).hexdigest()


def _check_engines(document: PoolDocument) -> None:
    for position, endpoint in enumerate(document.endpoints):
        if endpoint.engine not in ENGINES:
            raise DocumentError(
                f"/endpoints/{position}/engine",
                f"This router has no plugin for the engine '{endpoint.engine}'.",
                tuple(sorted(ENGINES)),
            )


def _with_drained(document: PoolDocument, drained: set[tuple[str, str]]) -> PoolDocument:
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
