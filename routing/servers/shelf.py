"""Pool documents and manual drains on disk: what a router serves again after a restart.

One file per pool, named by a hash of the pool's name, and `manual.drains`. Only the process that
holds the lock of the state folder writes here.
"""

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path

import msgspec

from routing.core.document import DocumentError, PoolDocument, encode_document, parse_document
from routing.pool import policy
from routing.servers import clock
from routing.servers.files import write_durably

logger = logging.getLogger(__name__)

Drained = set[tuple[str, str]]
"""Endpoints by id and instance: a drain ends with the instance that it was asked for."""


class VersionNotNewerError(Exception):
    """A document is older than, or differs from, the loaded one with the same number."""

    def __init__(self, pool: str, version: int, current: int) -> None:
        super().__init__(
            f"Version {version} of pool '{pool}' is not newer than the loaded version {current}."
        )
        self.current = current


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A document in force."""

    document: PoolDocument
    sha256: str
    since: float
    """Unix time since when it is."""


class Shelf:
    """The documents in force by pool. `check` decides, `keep` makes it durable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._drains = folder / "manual.drains"
        self.kept: dict[str, Kept] = {}
        self.drained: Drained = set()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def load(self) -> None:
        """Read the last good document of each pool; one that fails is logged and left out."""
        for path in sorted(self._folder.glob("*.json")):
            try:
                document = parse_document(path.read_bytes())
                policy.check(document)
            except (DocumentError, OSError) as error:
                # One pool that cannot be read must not keep the others out of service.
                pointer = getattr(error, "pointer", "")
                logger.error("%s was not loaded: %s %s", path.name, pointer, error)  # noqa: TRY400 - the message says it all
            else:
                self._put(document)
        self._load_drains()

    def _load_drains(self) -> None:
        try:
            found = msgspec.json.decode(self._drains.read_bytes(), type=list[tuple[str, str]])
        except FileNotFoundError:
            return
        except (msgspec.DecodeError, OSError) as error:
            logger.error("Manual drains were not loaded: %s", error)  # noqa: TRY400 - the message says it all
            return
        self.drained = set(found) & self._alive()

    def check(self, raw: bytes) -> tuple[PoolDocument, bool]:
        """Validate a document whole, and say whether it is the one in force already.

        Raises DocumentError or VersionNotNewerError.
        """
        document = parse_document(raw)
        policy.check(document)
        current = self.kept.get(document.pool)
        if current is None:
            return document, False
        if current.sha256 == document_sha256(document):
            return document, True
        if document.version <= current.document.version:
            raise VersionNotNewerError(document.pool, document.version, current.document.version)
        return document, False

    def keep(self, document: PoolDocument) -> Kept:
        """Put a checked document on disk, in force from here on. Raises OSError."""
        name = hashlib.sha256(document.pool.encode()).hexdigest()[:32]
        write_durably(self._folder / f"{name}.json", encode_document(document))
        kept = self._put(document)
        if not self.drained <= self._alive():
            self.drained &= self._alive()
            self._write_drains()
        return kept

    def drain(self, endpoint_id: str) -> list[str]:
        """Remember that an endpoint gets no further work; returns the pools that have it."""
        pools = []
        for name, kept in self.kept.items():
            for endpoint in kept.document.endpoints:
                if endpoint.id == endpoint_id:
                    self.drained.add((endpoint_id, endpoint.instance))
                    pools.append(name)
        if pools:
            self._write_drains()
        return pools

    def endpoint_ids(self) -> list[str]:
        """Every endpoint of every pool, sorted."""
        return sorted({endpoint_id for endpoint_id, _ in self._alive()})

    def _put(self, document: PoolDocument) -> Kept:
        kept = Kept(document=document, sha256=document_sha256(document), since=clock.unix_now())
        self.kept[document.pool] = kept
        return kept

    def _alive(self) -> Drained:
        return {
            (endpoint.id, endpoint.instance)
            for kept in self.kept.values()
            for endpoint in kept.document.endpoints
        }

    def _write_drains(self) -> None:
        write_durably(self._drains, msgspec.json.encode(sorted(self.drained)))


def document_sha256(document: PoolDocument) -> str:
    """SHA-256 of the document's canonical bytes, as hexadecimal digits."""
    return hashlib.sha256(encode_document(document)).hexdigest()
