"""One life of a process as its supervisor sees it."""

import asyncio
import socket

import pytest

from routing.servers.channel import Beat, Channel, Kind, Question, Reply, unpack
from routing.servers.lives import Life, NoAnswerError


async def nothing_running() -> asyncio.subprocess.Process:
    """A process that ended; what counts here are its channels."""
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()
    return process


def beat(connections: int, taken: int, *, is_draining: bool = False) -> Beat:
    return Beat(
        complete_until=0.0,
        connections=connections,
        taken=taken,
        epoch=1,
        total=0,
        failed=0,
        by_status={},
        is_draining=is_draining,
    )


async def paired() -> tuple[Life, list[Question]]:
    """A life whose process keeps the questions it is asked."""
    life, questions = Life(0, await nothing_running()), list[Question]()
    near, far = socket.socketpair()

    def on_frame(kind: int, payload: bytes) -> None:
        if kind == Kind.ASK:
            questions.append(unpack(payload, Question))

    life.channel = await Channel.open(near, on_frame=_ignore, on_lost=_nothing)
    await Channel.open(far, on_frame=on_frame, on_lost=_nothing)
    return life, questions


def _ignore(kind: int, payload: bytes) -> None: ...


def _nothing() -> None: ...


async def until_asked(questions: list[Question], count: int) -> None:
    async with asyncio.timeout(10):
        while len(questions) < count:
            await asyncio.sleep(0.005)


async def test_answers_find_their_questions_in_any_order() -> None:
    life, questions = await paired()
    first, second = (asyncio.create_task(life.ask("GET", path)) for path in ("/first", "/second"))
    await until_asked(questions, 2)

    for question in reversed(questions):
        life.take_reply(Reply(number=question.number, status=200, body=question.path.encode()))

    assert await first == (200, b"/first")
    assert await second == (200, b"/second")
    life.end()


async def test_whoever_waits_is_told_when_the_process_ends() -> None:
    life, questions = await paired()
    waiting = asyncio.create_task(life.ask("GET", "/state"))
    await until_asked(questions, 1)

    life.end()

    with pytest.raises(NoAnswerError, match="ended"):
        await waiting
    assert life.lost.is_set()


async def test_a_process_without_a_channel_takes_no_questions() -> None:
    life = Life(3, await nothing_running())

    with pytest.raises(NoAnswerError, match="Process 3"):
        await life.ask("GET", "/state")
    life.take_reply(Reply(number=1, status=200, body=b""))


async def test_connections_on_their_way_count() -> None:
    life, _ = await paired()
    assert life.connections == 0

    life.beat = beat(4, taken=10)
    life.handed = 13

    assert life.connections == 7
    life.end()


async def test_only_a_welcome_process_that_does_not_drain_takes_connections() -> None:
    life, _ = await paired()
    life.beat = beat(0, 0)
    before = life.takes_connections

    life.is_welcome = True
    ready = life.takes_connections
    life.beat = beat(0, 0, is_draining=True)

    assert (before, ready, life.takes_connections, life.is_ready) == (False, True, False, True)
    life.end()
