"""One life of one serving process, as its supervisor sees it."""

import asyncio
import socket

from routing.servers import clock
from routing.servers.channel import Beat, Channel, Kind, Question, Reply, pack
from routing.servers.merging import Page

ANSWER_SECONDS = 5.0


class NoAnswerError(Exception):
    """A process did not answer in time, or died meanwhile."""


class Life:
    """One life of one process, as its supervisor sees it."""

    def __init__(self, number: int, process: asyncio.subprocess.Process) -> None:
        self.number = number
        self.process = process
        self.started_at = clock.unix_now()
        self.channel: Channel | None = None
        self.handing: socket.socket | None = None
        self.beat: Beat | None = None
        self.is_welcome = False
        self.given: frozenset[str] = frozenset()
        """Documents that it began with, by hash."""
        self.drained: frozenset[tuple[str, str]] = frozenset()
        self.handed = 0
        """Connections given to it."""
        self.page: Page = {}
        """Its metrics as they were shown last."""
        self.lost = asyncio.Event()
        self._asked: dict[int, asyncio.Future[Reply]] = {}
        self._questions = 0

    @property
    def is_ready(self) -> bool:
        """It serves, and may be given connections and questions."""
        channel = self.channel
        return self.is_welcome and channel is not None and channel.is_open

    @property
    def takes_connections(self) -> bool:
        """Not while it drains."""
        return self.is_ready and self.beat is not None and not self.beat.is_draining

    @property
    def connections(self) -> int:
        """Open at present, with those that are on their way."""
        beat = self.beat
        return 0 if beat is None else beat.connections + max(0, self.handed - beat.taken)

    async def ask(
        self, method: str, path: str, *, query: str = "", body: bytes = b"", secret: bytes = b""
    ) -> tuple[int, bytes]:
        """Pass a request on and return status and body. Raises NoAnswerError."""
        self._questions = number = self._questions + 1
        question = Question(
            number=number, method=method, path=path, query=query, body=body, secret=secret
        )
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        try:
            if self.channel is None or not self.channel.send(Kind.ASK, pack(question)):
                raise NoAnswerError(f"Process {self.number} takes no questions.")
            async with asyncio.timeout(ANSWER_SECONDS):
                reply = await answer
        except TimeoutError as error:
            message = f"Process {self.number} did not answer in {ANSWER_SECONDS:g} s."
            raise NoAnswerError(message) from error
        finally:
            self._asked.pop(number, None)
        return reply.status, reply.body

    def take_reply(self, reply: Reply) -> None:
        """Its answer came."""
        answer = self._asked.get(reply.number)
        if answer and not answer.done():
            answer.set_result(reply)

    def end(self) -> None:
        """Its reports ended: nobody answers any more."""
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(NoAnswerError(f"Process {self.number} ended."))
        if self.handing:
            self.handing.close()
            self.handing = None
        if self.channel:
            self.channel.close()
        self.lost.set()
