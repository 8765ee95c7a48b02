"""Tokenises pieces of prompts in the background, each once, for the requests that come after.

No request waits: the one that brought a text is routed by what is known without it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from routing.identity.chains import Chains
from routing.servers.engine_tokens import NoTokensError

logger = logging.getLogger(__name__)

MOST_WAITING_BYTES = 8 * 1024 * 1024
MOST_REQUEST_BYTES = 1024 * 1024
"""Of one request; the beginning of its prompt is what others may share."""
PAUSE_SECONDS = 1.0
"""After a failure; what waits meanwhile is dropped when its room is needed."""

Fetch = Callable[[str], Awaitable[bytes]]
"""Ids of a text. Raises NoTokensError."""


class Filler:
    """Bounded: in texts asked for at once, and in bytes that wait."""

    def __init__(
        self, chains: Chains, fetch: Fetch, *, at_once: int, count: Callable[[str], None]
    ) -> None:
        self._chains = chains
        self._at_once = at_once
        self._fetch = fetch
        self._count = count
        self._waiting: deque[str] = deque()
        self._known: set[str] = set()
        """Texts that wait or are being asked for."""
        self._bytes = 0
        self._workers: set[asyncio.Task[None]] = set()
        self.is_failing = False
        """The last text could not be tokenised."""

    def want(self, texts: Iterable[str]) -> None:
        """Tokenise the missing texts of a request soon; what finds no room is left out."""
        left = MOST_REQUEST_BYTES
        for text in texts:
            left -= len(text)
            if left < 0:
                break
            if text in self._known:
                continue
            if self._bytes + len(text) > MOST_WAITING_BYTES:
                self._count("no-room")
                continue
            self._known.add(text)
            self._waiting.append(text)
            self._bytes += len(text)
        while self._waiting and len(self._workers) < min(self._at_once, len(self._known)):
            worker = asyncio.get_running_loop().create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def stop(self) -> None:
        """End at once."""
        self._waiting.clear()
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        while self._waiting:
            text = self._waiting.popleft()
            try:
                self._chains.learn(text, await self._fetch(text))
            except NoTokensError as error:
                self.is_failing = True
                self._count("failed")
                logger.info("A piece of a prompt was not tokenised: %s", error)
            else:
                self.is_failing = False
                self._count("done")
            finally:
                self._known.discard(text)
                self._bytes -= len(text)
            if self.is_failing:
                await asyncio.sleep(PAUSE_SECONDS)
