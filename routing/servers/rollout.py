"""One document for all processes of a router, in two steps; manual drains the same way.

A document is validated once, then prepared by every process that serves. Only when all have
prepared it, it is put on disk and committed, which cannot fail: it swaps what was prepared. A
process that does not answer the commit is killed and starts with the document from the disk. One
that comes up meanwhile waits until this is over and catches up before it gets a connection.
"""

import asyncio
import contextlib
import logging

import msgspec

from routing.core.document import DocumentError, PoolDocument, encode_document
from routing.servers.errors import problem
from routing.servers.lives import Life, NoAnswerError
from routing.servers.questions import COMMIT, PREPARE, Commitment
from routing.servers.shelf import Kept, VersionNotNewerError, document_sha256
from routing.servers.supervisor import Fleet

logger = logging.getLogger(__name__)

Answer = tuple[int, bytes]


class Rollout:
    """Changes of what the processes serve, one at a time."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._turn = asyncio.Lock()
        fleet.welcome = self.catch_up

    async def put(self, raw: bytes) -> Answer:
        """Load a document into every process, or say why not; then the loaded one stays."""
        shelf = self._fleet.shelf
        async with self._turn:
            try:
                document, is_in_force = shelf.check(raw)
                if not is_in_force:
                    await self._prepare(self._fleet.ready, document)
                    await self._commit(self._fleet.ready, shelf.keep(document))
            except DocumentError as error:
                return 422, problem(
                    "document-refused", error.message, pointer=error.pointer, allowed=error.allowed
                )
            except VersionNotNewerError as error:
                return 409, problem("version-not-newer", str(error), version=error.current)
            except NoAnswerError as error:
                return 503, problem("process-not-ready", f"{error} The loaded document stays.")
            kept = shelf.kept[document.pool]
        accepted = {
            "pool": document.pool,
            "version": document.version,
            "hash": kept.sha256,
            "state": "accepted",
        }
        return 200, msgspec.json.encode(accepted)

    async def drain(self, endpoint_id: str) -> Answer:
        """Give an endpoint no further work, in every process and also after a restart."""
        shelf = self._fleet.shelf
        async with self._turn:
            pools = shelf.drain(endpoint_id)
            for pool in pools:
                await self._push(self._fleet.ready, shelf.kept[pool])
        if not pools:
            known = shelf.endpoint_ids()[:20]
            detail = f"There is no endpoint '{endpoint_id}' here."
            return 404, problem("not-found", detail, allowed=known)
        answer = {"endpoint": endpoint_id, "state": "draining", "pools": pools}
        return 200, msgspec.json.encode(answer)

    async def catch_up(self, life: Life) -> None:
        """Bring a process that just came up to what is in force. Raises NoAnswerError."""
        shelf = self._fleet.shelf
        async with self._turn:
            is_drained_alike = life.drained == shelf.drained
            for kept in shelf.kept.values():
                if kept.sha256 not in life.given or not is_drained_alike:
                    await self._prepare([life], kept.document)
                    await self._commit([life], kept)

    async def _push(self, lives: list[Life], kept: Kept) -> None:
        """Both steps for a document that is in force; who does not follow is started again."""
        with contextlib.suppress(NoAnswerError):
            await self._prepare(lives, kept.document)
        await self._commit(lives, kept)

    async def _prepare(self, lives: list[Life], document: PoolDocument) -> None:
        """Raises NoAnswerError when one process did not."""
        raw = encode_document(document)
        answers = await asyncio.gather(*(life.ask("PUT", PREPARE, body=raw) for life in lives))
        for life, (status, _) in zip(lives, answers, strict=True):
            if status != 200:
                raise NoAnswerError(f"Process {life.number} refused {document_sha256(document)}.")

    async def _commit(self, lives: list[Life], kept: Kept) -> None:
        drained = sorted(self._fleet.shelf.drained)
        body = msgspec.msgpack.encode(Commitment(sha256=kept.sha256, drained=drained))
        asked = (life.ask("PUT", COMMIT, body=body) for life in lives)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for life, answer in zip(lives, answers, strict=True):
            if isinstance(answer, BaseException) or answer[0] != 200:
                logger.error("Process %d did not take a document and starts again.", life.number)
                with contextlib.suppress(ProcessLookupError):
                    life.process.kill()
