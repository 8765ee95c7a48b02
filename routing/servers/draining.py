"""Draining endpoints finish what they run; a pool may set a time for it.

After that time streams that run there are given up as if the engine had ended them: they go on
elsewhere where the pool lets them, else they end with an error event. Nobody is blamed for it. How
many requests a draining endpoint still has is in `/admin/state`.
"""

import asyncio

from routing.servers import clock
from routing.servers.documents import LoadedPool
from routing.servers.state import RouterState

LOOK_SECONDS = 0.5

_Life = tuple[str, str, str]
"""Pool, endpoint and instance."""


class Drainer:
    """One task that looks after draining endpoints with a time."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._since: dict[_Life, float] = {}
        self._task: asyncio.Task[None] | None = None

    def follow_documents(self) -> None:
        """Note when each endpoint began to drain; call it after each swap."""
        now = clock.monotonic()
        draining = {
            (name, endpoint.spec.id, endpoint.spec.instance)
            for name, pool in self._state.directory.pools.items()
            for endpoint in pool.endpoints.values()
            if endpoint.spec.state == "draining"
        }
        self._since = {life: self._since.get(life, now) for life in draining}
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look())

    async def stop(self) -> None:
        """End the task."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = clock.monotonic()
            for (name, endpoint_id, _), since in self._since.items():
                pool = self._state.directory.pools[name]
                seconds = pool.document.limits.drain_timeout_seconds
                if seconds is not None and now - since >= seconds:
                    self._give_up(pool, endpoint_id)

    def _give_up(self, pool: LoadedPool, endpoint_id: str) -> None:
        for relay in list(self._state.streams.get((pool.document.pool, endpoint_id), ())):
            relay.leave("drains, and the time for it is over")
