"""Keeps a reader of exact prompts for each pool whose document wants one, and checks it.

In mode `tokens` the tokenizer comes from files; short new text is tokenised while a request is
read, longer text in the background. In mode `engine` everything is asked of engines, in the
background. Until something is known, and where it cannot be known, requests are routed by bytes
and their decisions say so. Every minute each engine is asked for the tokens of a fixed
conversation: an engine that was upgraded or configured otherwise is found before its hits fade.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from secrets import randbits
from typing import TYPE_CHECKING

from routing.core.bodies.wire import Turns
from routing.core.document import PromptIdentity
from routing.core.openai import ExactPrompt
from routing.identity import scaffold
from routing.identity.chains import Chains
from routing.identity.conversation import Conversation, NotPlainError
from routing.identity.reading import PieceSource, PromptReader, unknown
from routing.identity.scaffold import PROBE, Question, ScaffoldError
from routing.servers import clock
from routing.servers.documents import Endpoint, LoadedPool
from routing.servers.engine_tokens import EngineTokens, NoTokensError
from routing.servers.filling import Filler
from routing.servers.state import RouterState

if TYPE_CHECKING:
    from routing.identity.files import FileTokenizer

logger = logging.getLogger(__name__)

INLINE_BYTES = 16 * 1024
"""Text that a request may have tokenised while it is read, about 10 ms; the rest comes later."""
CHECK_SECONDS = 60.0
LOOK_SECONDS = 1.0
"""How often it is looked whether an endpoint is due."""
CHECKED_AT_ONCE = 8
ASKED_AT_ONCE = 4
"""Texts that engines are asked about at a time; a tokenizer at hand takes one core and no more."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 15.0
FINDING = "tokeniser-unavailable"
MOST_FILE_BYTES = 256 * 1024 * 1024


class Tokenisers:
    """One keeper per pool that identifies prompts by token ids."""

    def __init__(self, state: RouterState, folder: Path) -> None:
        self._state = state
        self._folder = folder
        self._keepers: dict[str, Keeper] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def follow_documents(self) -> None:
        """Begin and end keepers so that they match the documents; call it after each swap."""
        for name, pool in self._state.directory.pools.items():
            identity = pool.document.prompt_identity
            keeper = self._keepers.get(name)
            if keeper and keeper.identity != identity:
                self._end(self._keepers.pop(name))
                keeper = None
            if keeper is None and identity.mode != "bytes":
                keeper = self._keepers[name] = Keeper(self._state, pool, self._folder)
                keeper.start()
            pool.reader = keeper

    def _end(self, keeper: "Keeper") -> None:
        task = asyncio.get_running_loop().create_task(keeper.stop())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def stop(self) -> None:
        """End all of them."""
        keepers, self._keepers = list(self._keepers.values()), {}
        await asyncio.gather(*(keeper.stop() for keeper in keepers), *self._ending)


class Keeper:
    """The reader of one pool, through its life: made, filled, checked, made again."""

    def __init__(self, state: RouterState, pool: LoadedPool, folder: Path) -> None:
        self.identity: PromptIdentity = pool.document.prompt_identity
        self._state = state
        self._pool = pool
        self._folder = folder
        self._engines = EngineTokens(state, pool)
        self._chains = Chains(
            block_tokens=self.identity.block_tokens,
            cache_bytes=self.identity.cache_bytes,
            secret=randbits(64),
        )
        self._tokenise: Callable[[str], bytes] | None = None
        """The tokenizer at hand; `None` where engines are asked."""
        self._reader: PromptReader | None = None
        at_once = ASKED_AT_ONCE if self.identity.mode == "engine" else 1
        self._filler = Filler(self._chains, self._fetch, at_once=at_once, count=self._count)
        self._checked_at: dict[tuple[str, str], float] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Make the reader and check it from then on."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End at once."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._filler.stop()
        self._pool.router.caches.findings.settle(FINDING, None)

    def read(
        self,
        path: str,
        body: bytes,
        turns: Turns | None,
        *,
        adapter: str | None,
        salt: str | None,
    ) -> ExactPrompt:
        """See PoolReader."""
        if self._reader is None:
            return unknown(FINDING)
        reading = self._reader.read(
            path, body, turns, adapter=adapter, salt=salt, tokenise=self._at_hand()
        )
        if reading.missing:
            self._filler.want(reading.missing)
            if reading.prompt.degraded and self._filler.is_failing:
                return unknown(FINDING)
        return reading.prompt

    def _at_hand(self) -> Callable[[str], bytes | None]:
        """Tokenises short text at once, as long as the request's share lasts."""
        tokenise, left = self._tokenise, INLINE_BYTES

        def ids(text: str) -> bytes | None:
            nonlocal left
            left -= len(text)
            return tokenise(text) if tokenise and left >= 0 else None

        return ids

    async def _fetch(self, text: str) -> bytes:
        if self._tokenise:
            return await asyncio.to_thread(self._tokenise, text)
        return await self._engines.ids(Question(prompt=text))

    def _count(self, result: str) -> None:
        self._state.metrics.tokenised.labels(self._pool.document.pool, result).inc()

    async def _run(self) -> None:
        await self._make()
        while True:
            await self._check_the_due()
            await asyncio.sleep(LOOK_SECONDS)

    async def _make(self) -> None:
        """Make the reader, ever more seldom until it works."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                source = await self._source()
            except (NoTokensError, ScaffoldError, OSError, ValueError, ImportError) as error:
                self._tell_unavailable(error)
            else:
                self._chains.forget()
                self._reader = PromptReader(source, self._chains)
                self._pool.router.caches.findings.settle(FINDING, None)
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _tell_unavailable(self, error: Exception) -> None:
        message = f"Prompts are identified by bytes, because there is no tokenizer yet: {error}"
        logger.warning("Pool %s: %s", self._pool.document.pool, message)
        self._pool.router.caches.findings.tell(FINDING, None, message, now=clock.monotonic())

    async def _source(self) -> PieceSource:
        if self.identity.mode == "engine":
            asked = [await self._engines.ids(question) for question in scaffold.questions()]
            return scaffold.learn(asked)
        tokenizer = await asyncio.to_thread(load, self._folder / str(self.identity.tokenizer))
        self._tokenise = tokenizer.ids
        return tokenizer

    # Checks.

    async def _check_the_due(self) -> None:
        now = clock.monotonic()
        alive = {(one.spec.id, one.spec.instance): one for one in self._engines.ready()}
        self._checked_at = {key: at for key, at in self._checked_at.items() if key in alive}
        due = [
            key for key in alive if now - self._checked_at.get(key, -CHECK_SECONDS) >= CHECK_SECONDS
        ]
        results: list[bool | None] = []
        for start in range(0, len(due), CHECKED_AT_ONCE):
            some = due[start : start + CHECKED_AT_ONCE]
            results += await asyncio.gather(*(self._check(alive[key]) for key in some))
            self._checked_at |= dict.fromkeys(some, clock.monotonic())
        if self.identity.mode == "engine" and False in results and True not in results:
            # All engines write prompts in another way than they did.
            await self._make()

    async def _check(self, endpoint: Endpoint) -> bool | None:
        """Whether an engine's tokens are ours; `None` when it does not say."""
        pool = self._pool
        matches: bool | None = None
        try:
            turns, ours = await self._probe()
            matches = await self._engines.ids_at(endpoint, Question(turns=turns)) == ours
        except (NoTokensError, NotPlainError) as error:
            logger.info("%s was not compared: %s", endpoint.spec.id, error)
        if matches is not None:
            pool.router.tokeniser_checked(endpoint.spec.id, matches=matches, now=clock.monotonic())
        result = {True: "same", False: "other", None: "unanswered"}[matches]
        self._state.metrics.tokeniser_checks.labels(pool.document.pool, result).inc()
        return matches

    async def _probe(self) -> tuple[tuple[tuple[str, str], ...], bytes]:
        """The conversation of the check, with our tokens. Raises NotPlainError or NoTokensError."""
        if self._reader is None:
            raise NoTokensError("There is no reader yet.")
        turns: tuple[tuple[str, str], ...] = PROBE
        try:
            pieces = self._reader.source.of_conversation(_conversation(turns))
        except NotPlainError:
            # Some templates know no system message.
            turns = PROBE[1:]
            pieces = self._reader.source.of_conversation(_conversation(turns))
        ids = [
            piece.lead + (await self._fetch(piece.text) if piece.text else b"") for piece in pieces
        ]
        return turns, b"".join(ids)


def load(folder: Path) -> "FileTokenizer":
    """Read a folder of tokenizer files. Raises OSError, ValueError or ImportError."""
    # The libraries are an extra of this project: routers by bytes run without them.
    from routing.identity import files

    main = folder / "tokenizer.json"
    if main.stat().st_size > MOST_FILE_BYTES:
        raise ValueError(f"{main.name} of {folder.name} is larger than {MOST_FILE_BYTES} bytes.")
    found = files.TokenizerFiles(
        tokenizer=main.read_bytes(),
        settings=_content(folder / "tokenizer_config.json"),
        template=_content(folder / "chat_template.jinja"),
    )
    return files.tokenizer_of(found, now=_time)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _time(form: str) -> str:
    """The present time as templates write it; engines' containers run in UTC."""
    return datetime.fromtimestamp(clock.unix_now(), UTC).strftime(form)


def _conversation(turns: tuple[tuple[str, str], ...]) -> Conversation:
    return Conversation(messages=[{"role": role, "content": text} for role, text in turns])
