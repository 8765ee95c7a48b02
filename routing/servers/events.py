"""Follows the cache events of every endpoint that publishes some, as the loaded documents say.

Where a document states no source, engines are asked (`GET /kv_event_sources`), in pools that
identify prompts by token ids. What cannot be followed is a finding and never an error for clients.
"""

import asyncio
import logging
from typing import NamedTuple

import zmq

from routing.core.table import Instance
from routing.servers import clock
from routing.servers.collecting import Collectors
from routing.servers.documents import Endpoint, LoadedPool
from routing.servers.event_sources import (
    DISCOVERY_PATH,
    EventSource,
    NoEventsError,
    discovered_source,
    stated_source,
)
from routing.servers.event_stream import EventStream
from routing.servers.state import RouterState
from routing.servers.upstream import Collected, Deadlines, UpstreamError

logger = logging.getLogger(__name__)

FINDING = "no-cache-events"
LOOK_SECONDS = 1.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
"""Between two questions to an engine that does not answer, or publishes nothing."""
_DEADLINES = Deadlines(connect=1.0, first_byte=2.0, stall=2.0)


class _Key(NamedTuple):
    pool: str
    endpoint: str
    instance: str
    source: EventSource | None
    generation: int


class EventStreams:
    """One task per endpoint instance."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._tasks: dict[_Key, asyncio.Task[None]] = {}
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self.collectors = Collectors()

    def follow_documents(self) -> None:
        """Start and stop tasks so that they match the loaded documents; call it after each swap."""
        wanted = {
            self._key(name, pool, endpoint): (pool, endpoint)
            for name, pool in self._state.directory.pools.items()
            for endpoint in pool.endpoints.values()
            if endpoint.spec.kv_events or pool.document.prompt_identity.mode != "bytes"
        }
        for key in self._tasks.keys() - wanted.keys():
            self._tasks.pop(key).cancel()
        for key in wanted.keys() - self._tasks.keys():
            pool, endpoint = wanted[key]
            self._tasks[key] = asyncio.get_running_loop().create_task(self._follow(pool, endpoint))

    def _key(self, name: str, pool: LoadedPool, endpoint: Endpoint) -> _Key:
        spec = endpoint.spec
        generation = pool.router.caches.events.generation
        return _Key(name, spec.id, spec.instance, stated_source(spec), generation)

    async def stop(self) -> None:
        """End all streams."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.collectors.close()
        if self._context:
            self._context.destroy(linger=0)
            self._context = None

    async def _follow(self, pool: LoadedPool, endpoint: Endpoint) -> None:
        instance = pool.router.caches.instance(endpoint.spec.id)
        if instance is None:
            return
        source = await self._source(pool, endpoint, instance)
        if self._context is None:
            self._context = zmq.Context()
        decoder = endpoint.engine.event_decoder()
        feed = pool.router.caches.events
        stream = EventStream(feed, instance, decoder, source, self._context)
        try:
            if source.binds:
                await self._collect(pool, instance, stream, self._context)
            stream.start()
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                stream.look()
        except zmq.ZMQError as error:
            self._tell(pool, instance, f"{source.address} cannot be used: {error}.")
        finally:
            stream.stop()
            self.collectors.remove(stream)

    async def _collect(
        self,
        pool: LoadedPool,
        instance: Instance,
        stream: EventStream,
        context: "zmq.Context[zmq.Socket[bytes]]",
    ) -> None:
        """Put a stream behind its port, as soon as that is free: a router that is being replaced
        still has it."""
        address, pause = stream.source.address, FIRST_PAUSE_SECONDS
        while True:
            try:
                self.collectors.add(stream, context)
            except zmq.ZMQError as error:
                self._tell(pool, instance, f"{address} cannot be bound: {error}.")
            else:
                pool.router.caches.findings.settle(FINDING, instance)
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    # Discovery.

    async def _source(
        self, pool: LoadedPool, endpoint: Endpoint, instance: Instance
    ) -> EventSource:
        """The document's source, else the engine's, as soon as it tells one."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                found = stated_source(endpoint.spec) or await self._ask(endpoint)
                pool.router.caches.findings.settle(FINDING, instance)
            except NoEventsError as error:
                self._tell(pool, instance, str(error))
            except UpstreamError as error:
                logger.debug("No event sources of %s: %s", endpoint.spec.id, error)
            else:
                return found
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _ask(self, endpoint: Endpoint) -> EventSource:
        answer = Collected(limit_bytes=1024 * 1024)
        message = b"GET %b HTTP/1.1\r\nhost: %b\r\naccept: application/json\r\n\r\n" % (
            DISCOVERY_PATH.encode(),
            str(endpoint.origin).encode(),
        )
        await self._state.upstreams.run(endpoint.origin, message, answer, _DEADLINES)
        if answer.status != 200:
            raise NoEventsError(
                f"The engine answers {answer.status} when it is asked for its cache events;"
                " hits are guessed from what this router sent."
            )
        return discovered_source(answer.body, endpoint.spec, host=endpoint.origin.host)

    def _tell(self, pool: LoadedPool, instance: Instance, message: str) -> None:
        if instance.is_alive:
            pool.router.caches.findings.tell(FINDING, instance, message, now=clock.monotonic())
