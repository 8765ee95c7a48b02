"""Sends fresh decode endpoints an ordinary prompt before their first pull of somebody's KV.

In two of two tries a decode engine whose first request was a pull died of it. What such a prompt
uses is written down under the router's own name, as undelivered: metering counts it with the probes
and bills nobody.
"""

import asyncio
import logging
import secrets

import msgspec

from routing.core.usage import OWN_TENANT, WARM_UP_KEY, UsageEvent
from routing.engines.base import TokenUsage
from routing.servers import clock
from routing.servers.documents import Endpoint, LoadedPool
from routing.servers.state import RouterState
from routing.servers.upstream import Collected, Deadlines, UpstreamError

logger = logging.getLogger(__name__)

PROMPT_WORDS = 300
"""About as many tokens: several blocks, and more than what engines special-case as short."""
LOOK_SECONDS = 0.5
"""How often it is looked whether an engine was started anew."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 15.0
ANSWER_BYTES = 1024 * 1024
PATH = "/v1/completions"

_Life = tuple[str, str, str]
"""Pool, endpoint and instance."""


class Warmer:
    """One task per endpoint that is cold, and one that looks for them."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._tasks: dict[_Life, asyncio.Task[None]] = {}
        self._looking: asyncio.Task[None] | None = None

    def follow_documents(self) -> None:
        """Keep fresh endpoints cold until they are warmed; call it after each swap."""
        for pool in self._state.directory.pools.values():
            pool.router.warmth.begin()
        self._warm_the_cold()
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def stop(self) -> None:
        """End all tasks."""
        tasks, self._tasks = list(self._tasks.values()), {}
        if self._looking is not None:
            tasks.append(self._looking)
            self._looking = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._warm_the_cold()

    def _warm_the_cold(self) -> None:
        cold = {
            (name, endpoint_id, pool.endpoints[endpoint_id].spec.instance)
            for name, pool in self._state.directory.pools.items()
            for endpoint_id in pool.router.warmth.cold()
        }
        # One that ended and is cold again was started anew since.
        over = {life for life, task in self._tasks.items() if life not in cold or task.done()}
        for life in over:
            self._tasks.pop(life).cancel()
        for life in cold - self._tasks.keys():
            self._tasks[life] = asyncio.get_running_loop().create_task(self._warm(life))

    async def _warm(self, life: _Life) -> None:
        """Ask until the endpoint answered, ever more seldom."""
        name, endpoint_id, instance = life
        pause = FIRST_PAUSE_SECONDS
        while True:
            pool = self._state.directory.pools[name]
            if await self._ask(pool, pool.endpoints[endpoint_id]):
                pool.router.warmth.warmed(endpoint_id, instance)
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _ask(self, pool: LoadedPool, endpoint: Endpoint) -> bool:
        """One short completion; false when it failed."""
        answer, began_at = Collected(limit_bytes=ANSWER_BYTES), clock.unix_now()
        request_id, limits = f"warm-up-{secrets.token_hex(8)}", pool.document.limits
        deadlines = Deadlines(
            connect=limits.connect_timeout_seconds,
            first_byte=limits.first_token_timeout_seconds,
            stall=limits.stall_timeout_seconds,
        )
        message = _message(pool, endpoint, request_id)
        try:
            await self._state.upstreams.run(endpoint.origin, message, answer, deadlines)
        except UpstreamError as error:
            logger.info("%s is not warm yet: %s", endpoint.spec.id, error)
            return False
        if answer.status != 200:
            logger.warning("%s answered its first prompt with %d.", endpoint.spec.id, answer.status)
            return False
        usage = endpoint.engine.usage(answer.body) or TokenUsage()
        self._state.spool.append(_event(self._state, pool, endpoint, request_id, usage, began_at))
        return True


def _message(pool: LoadedPool, endpoint: Endpoint, request_id: str) -> bytes:
    # The number makes each prompt another one, so that it is computed and not found.
    prompt = f"{request_id} " + "warm " * PROMPT_WORDS
    body = msgspec.json.encode(
        {
            "model": _base_model(pool),
            "prompt": prompt,
            "max_tokens": 1,
            "temperature": 0,
        }
    )
    rank = endpoint.spec.data_parallel_rank
    return b"".join(
        (
            b"POST %b HTTP/1.1\r\nhost: %b\r\n" % (PATH.encode(), str(endpoint.origin).encode()),
            b"content-type: application/json\r\nx-request-id: %b\r\n" % request_id.encode(),
            b"" if rank is None else b"x-data-parallel-rank: %d\r\n" % rank,
            b"content-length: %d\r\n\r\n%b" % (len(body), body),
        )
    )


def _base_model(pool: LoadedPool) -> str:
    """A model that every endpoint serves: adapters are loaded here and there."""
    models = pool.document.models
    return next((model.name for model in models if model.adapter_of is None), models[0].name)


def _event(
    state: RouterState,
    pool: LoadedPool,
    endpoint: Endpoint,
    request_id: str,
    usage: TokenUsage,
    began_at: float,
) -> UsageEvent:
    """The account of a first prompt, under the router's own name."""
    spec, document = endpoint.spec, pool.document
    return UsageEvent(
        sequence=0,
        request_id=request_id,
        router=state.name,
        pool=document.pool,
        document_version=document.version,
        policy=document.policy.name,
        tenant=OWN_TENANT,
        project=OWN_TENANT,
        key_id=WARM_UP_KEY,
        model=_base_model(pool),
        endpoint=spec.id,
        instance=spec.instance,
        node=spec.node,
        role=spec.role,
        prefill_endpoint=None,
        received_at=began_at,
        ended_at=clock.unix_now(),
        outcome="ok",
        status=200,
        attempt=1,
        delivered=False,
        stream=False,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        token_source="none" if usage.prompt_tokens is None else "engine",
        ttft_seconds=None,
        tpot_seconds=None,
    )
