"""Hand-over of KV between simulated engines, in the shape of vLLM's NIXL connector.

SGLang's engines use the same channel as their bootstrap server: what they ask for is a room, in
which the prompt may not be yet.

P's side channel is a small TCP service that speaks JSON lines: `pull` asks whether the blocks are
held and how fast the link is, `done` frees them. D waits for the bytes at the rate of the slower
end. Every simulated engine declares host-staged transport, which is in the profile's rate.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

import orjson

from routing.testbed.driver import EngineDriver
from routing.testbed.sequence import RemoteKv, Sequence

log = logging.getLogger(__name__)

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 2.0
MAX_LINE_BYTES = 4096
ANY_LIFE = ""
"""Engine id of a room: it is drawn anew for each prompt, so no later life knows it."""
WAIT_PAUSE_SECONDS = 0.005


class PullError(Exception):
    """The KV of a prompt could not be had."""


@dataclass(frozen=True, slots=True)
class Link:
    """What an engine's link moves in one direction, and how long a transfer takes to start."""

    bytes_per_second: float
    setup_seconds: float


class SideChannel:
    """P's service."""

    def __init__(self, driver: EngineDriver, *, engine_id: str, link: Link) -> None:
        self._driver = driver
        self._engine_id = engine_id
        self._link = link
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen; the port. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_LINE_BYTES)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def stop(self) -> None:
        """Stop listening and end open conversations."""
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while line := await reader.readline():
                writer.write(orjson.dumps(self._answer(line)) + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            log.info("A side channel conversation broke off.")
        finally:
            self._writers.discard(writer)
            writer.close()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            message = orjson.loads(line)
            kind, request_id = message["kind"], message["request_id"]
        except (orjson.JSONDecodeError, TypeError, KeyError):
            return {"ok": False, "reason": "A message is a JSON object with kind and request_id."}
        if message.get("engine_id") not in (self._engine_id, ANY_LIFE):
            return {"ok": False, "reason": "This is another engine, or a later life of that one."}
        if kind == "done":
            return {"ok": self._driver.release(request_id)}
        hold = self._driver.model.held.get(request_id)
        if hold is None:
            return {"ok": False, "reason": f"Request {request_id} is not held (any more)."}
        return {
            "ok": True,
            "tokens": hold.tokens,
            "bytes_per_second": self._link.bytes_per_second,
            "setup_seconds": self._link.setup_seconds,
        }


class Puller:
    """D's part: fetches the KV of sequences and tells the driver."""

    def __init__(self, *, link: Link, kv_bytes_per_token: int, fail_on_loss: bool) -> None:
        self._link = link
        self._bytes_per_token = kv_bytes_per_token
        self._fail_on_loss = fail_on_loss
        self._tasks: set[asyncio.Task[None]] = set()
        self._driver: EngineDriver | None = None

    def attach(self, driver: EngineDriver) -> None:
        """Set who hears of finished transfers."""
        self._driver = driver

    def start(self, sequence: Sequence) -> None:
        """Begin to pull a sequence whose blocks are allocated."""
        task = asyncio.get_running_loop().create_task(self._run(sequence))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Give up what is under way."""
        for task in self._tasks:
            task.cancel()

    async def _run(self, sequence: Sequence) -> None:
        driver, remote = self._driver, sequence.remote
        if driver is None or remote is None:
            return
        arrived = True
        try:
            await self._pull(driver, sequence, remote)
        except (OSError, TimeoutError, ValueError, PullError) as error:
            log.warning("KV of %s was not pulled: %s", remote.request_id, error)
            arrived = False
        driver.pull_finished(sequence, arrived=arrived, fail=self._fail_on_loss)

    async def _pull(self, driver: EngineDriver, sequence: Sequence, remote: RemoteKv) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                remote.host, remote.port, limit=MAX_LINE_BYTES
            )
        try:
            answer = await _wait(reader, writer, remote)
            posted = loop.time() - began
            wanted = remote.tokens - sequence.local_hit
            if answer["tokens"] < remote.tokens:
                raise PullError(f"P holds {answer['tokens']} of {remote.tokens} tokens.")
            size = wanted * self._bytes_per_token
            seconds = self.transfer_seconds(size, answer)
            await asyncio.sleep(seconds)
            await _ask(reader, writer, "done", remote)
            stats = driver.model.stats
            stats.transfer_seconds.observe(seconds)
            stats.transfer_post.observe(posted)
            stats.transfer_bytes.observe(float(size))
            stats.transfer_descriptors.observe(float(len(sequence.blocks)))
        finally:
            writer.close()

    def transfer_seconds(self, size: int, peer: dict[str, Any]) -> float:
        """Time for `size` bytes between this engine and a peer that said how fast it is."""
        rate = min(self._link.bytes_per_second, float(peer["bytes_per_second"]))
        setup = max(self._link.setup_seconds, float(peer["setup_seconds"]))
        return setup + size / rate


async def _wait(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, remote: RemoteKv
) -> dict[str, Any]:
    """Ask until the prompt is computed, as long as the other end may need for it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + remote.wait_seconds
    while True:
        try:
            return await _ask(reader, writer, "pull", remote)
        except PullError:
            if loop.time() >= until:
                raise
        await asyncio.sleep(WAIT_PAUSE_SECONDS)


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, kind: str, remote: RemoteKv
) -> dict[str, Any]:
    message = {"kind": kind, "request_id": remote.request_id, "engine_id": remote.engine_id}
    writer.write(orjson.dumps(message) + b"\n")
    async with asyncio.timeout(ANSWER_SECONDS):
        line = await reader.readline()
    answer: dict[str, Any] = orjson.loads(line) if line else {"ok": False, "reason": "P hung up."}
    if not answer.get("ok"):
        raise PullError(str(answer.get("reason", f"P refused '{kind}'.")))
    return answer
