"""Reads engines' metrics pages, spread in time, slower where an engine answers slowly."""

import asyncio
import logging
import zlib

from routing.servers import clock
from routing.servers.documents import Endpoint, LoadedPool
from routing.servers.state import RouterState
from routing.servers.upstream import Collected, Deadlines, UpstreamError

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 0.5
"""A page costs the engine time; below 200 ms it is felt by its users."""
SLOWEST_SECONDS = 10.0
SLOW_SHARE = 0.25
"""An engine that needs more than this share of the interval is asked half as often."""
PAGE_BYTES = 8 * 1024 * 1024
_DEADLINES = Deadlines(connect=1.0, first_byte=2.0, stall=2.0)


class Scraper:
    """One task per endpoint instance of the loaded documents."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._tasks: dict[tuple[str, str, str, str], asyncio.Task[None]] = {}

    def follow_documents(self) -> None:
        """Start and stop tasks so that they match the loaded documents; call it after each swap."""
        wanted = {
            (name, endpoint.spec.id, endpoint.spec.instance, endpoint.spec.url): (pool, endpoint)
            for name, pool in self._state.directory.pools.items()
            for endpoint in pool.endpoints.values()
        }
        for key in self._tasks.keys() - wanted.keys():
            self._tasks.pop(key).cancel()
        for key in wanted.keys() - self._tasks.keys():
            pool, endpoint = wanted[key]
            self._tasks[key] = asyncio.get_running_loop().create_task(self._follow(pool, endpoint))

    async def stop(self) -> None:
        """End all tasks."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, pool: LoadedPool, endpoint: Endpoint) -> None:
        interval = INTERVAL_SECONDS
        # Spread by name, so that many endpoints are not read in one burst.
        share = zlib.crc32(endpoint.spec.id.encode()) / 2**32
        await asyncio.sleep(share * INTERVAL_SECONDS)
        while True:
            started = clock.monotonic()
            is_good = await self._read(pool, endpoint)
            spent = clock.monotonic() - started
            if is_good and spent <= SLOW_SHARE * INTERVAL_SECONDS:
                interval = INTERVAL_SECONDS
            else:
                interval = min(2 * interval, SLOWEST_SECONDS)
            await asyncio.sleep(max(0.0, interval - spent))

    async def _read(self, pool: LoadedPool, endpoint: Endpoint) -> bool:
        """One reading into the pool's router; false when there was none."""
        page = Collected(limit_bytes=PAGE_BYTES)
        message = b"GET %b HTTP/1.1\r\nhost: %b\r\naccept: text/plain\r\n\r\n" % (
            endpoint.engine.metrics_path.encode(),
            str(endpoint.origin).encode(),
        )
        try:
            await self._state.upstreams.run(endpoint.origin, message, page, _DEADLINES)
            if page.status != 200:
                raise ValueError(f"status {page.status}")
            signals = endpoint.engine.signals(page.body)
        except (UpstreamError, ValueError) as error:
            logger.debug("No metrics from %s: %s", endpoint.spec.id, error)
            self._state.metrics.scrapes.labels("failed").inc()
            return False
        pool.router.observe(endpoint.spec.id, signals, now=clock.monotonic())
        self._state.metrics.scrapes.labels("ok").inc()
        return True
