"""Reads engines' metrics pages, spread in time, slower where an engine answers slowly."""

import asyncio
import logging
from dataclasses import replace

from routing.core.signals import EngineSignals
from routing.pool import turns
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
NO_LOADS_SECONDS = 60.0
PAGE_BYTES = 8 * 1024 * 1024
MODELS_SECONDS = 10.0
"""How often a pool with adapters asks which are loaded: they come and go by hand."""
MODELS_BYTES = 1024 * 1024
_DEADLINES = Deadlines(connect=1.0, first_byte=2.0, stall=2.0)


class Scraper:
    """One task per endpoint instance of the loaded documents."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._no_loads_until: dict[str, float] = {}
        self._tasks: dict[tuple[str, str, str, str], asyncio.Task[None]] = {}

    def follow_documents(self) -> None:
        """Start and stop tasks so that they match the loaded documents; call it after each swap."""
        wanted = {
            (name, endpoint.spec.id, endpoint.spec.instance, endpoint.spec.url): (pool, endpoint)
            for name, pool in self._state.directory.pools.items()
            for endpoint in pool.endpoints.values()
        }
        names = {key[1] for key in wanted}
        self._no_loads_until = {
            name: until for name, until in self._no_loads_until.items() if name in names
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
        await asyncio.sleep(turns.share_of(endpoint.spec.id) * INTERVAL_SECONDS)
        models_at = -MODELS_SECONDS
        while True:
            started = clock.monotonic()
            is_good = await self._read(pool, endpoint)
            if is_good and started - models_at >= MODELS_SECONDS:
                models_at = started
                await self._read_models(pool, endpoint)
            spent = clock.monotonic() - started
            if is_good and spent <= SLOW_SHARE * INTERVAL_SECONDS:
                interval = INTERVAL_SECONDS
            else:
                interval = min(2 * interval, SLOWEST_SECONDS)
            await asyncio.sleep(max(0.0, interval - spent))

    async def _read(self, pool: LoadedPool, endpoint: Endpoint) -> bool:
        """One reading into the pool's router; false when there was none."""
        try:
            page = await self._get(endpoint, endpoint.engine.metrics_path, limit_bytes=PAGE_BYTES)
            signals = endpoint.engine.signals(page)
        except (UpstreamError, ValueError) as error:
            logger.debug("No metrics from %s: %s", endpoint.spec.id, error)
            self._state.metrics.scrapes.labels("failed").inc()
            if isinstance(error, UpstreamError) and error.kind == "connect":
                pool.router.warmth.out_of_reach(endpoint.spec.id)
            return False
        signals = await self._with_loads(endpoint, signals)
        pool.router.observe(endpoint.spec.id, signals, now=clock.monotonic())
        self._state.metrics.scrapes.labels("ok").inc()
        return True

    async def _with_loads(self, endpoint: Endpoint, signals: EngineSignals) -> EngineSignals:
        """Tokens that wait, from an engine that reports them; one that does not is left alone."""
        path, name = endpoint.engine.loads_path, endpoint.spec.id
        if path is None or self._no_loads_until.get(name, 0.0) > clock.monotonic():
            return signals
        try:
            report = await self._get(endpoint, path, limit_bytes=MODELS_BYTES)
        except (UpstreamError, ValueError) as error:
            logger.debug("No load report from %s: %s", name, error)
            self._no_loads_until[name] = clock.monotonic() + NO_LOADS_SECONDS
            return signals
        return replace(signals, waiting_tokens=endpoint.engine.waiting_tokens(report))

    async def _read_models(self, pool: LoadedPool, endpoint: Endpoint) -> None:
        """Which adapters are loaded, where the pool has any; not being told is fine."""
        if all(model.adapter_of is None for model in pool.document.models):
            return
        try:
            answer = await self._get(endpoint, "/v1/models", limit_bytes=MODELS_BYTES)
        except (UpstreamError, ValueError) as error:
            logger.debug("No models from %s: %s", endpoint.spec.id, error)
            return
        names = endpoint.engine.resident_adapters(answer)
        if names is not None:
            pool.router.adapters_loaded(endpoint.spec.id, names)

    async def _get(self, endpoint: Endpoint, path: str, *, limit_bytes: int) -> bytes:
        """The body of an answer with status 200. Raises UpstreamError or ValueError."""
        answer = Collected(limit_bytes=limit_bytes)
        message = b"GET %b HTTP/1.1\r\nhost: %b\r\naccept: */*\r\n\r\n" % (
            path.encode(),
            str(endpoint.origin).encode(),
        )
        await self._state.upstreams.run(endpoint.origin, message, answer, _DEADLINES)
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")
        return answer.body
