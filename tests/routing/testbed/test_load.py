"""The load generator against engines and against servers that misbehave."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from routing.testbed import load
from routing.testbed.load import run_load
from routing.testbed.load_plan import LoadSpec
from routing.testbed.load_report import LoadProgress
from tests.routing.testbed.conftest import StartEngine
from tests.routing.testbed.helpers import MODEL, url

StartServer = Callable[[bytes], Awaitable[str]]
NOBODY = "http://127.0.0.1:9"


def make_spec(*urls: str, **overrides: Any) -> LoadSpec:
    """Twenty small requests, sent almost at once."""
    values: dict[str, Any] = {
        "urls": urls,
        "model": MODEL,
        "rate": 500.0,
        "requests": 20,
        "groups": 4,
        "prompts_per_group": 5,
        "system_tokens": 320,
        "question_tokens": 20,
        "output_tokens": 6,
        "timeout_seconds": 20.0,
    }
    return LoadSpec(**(values | overrides))


@pytest.fixture
async def start_server() -> AsyncIterator[StartServer]:
    """`await start_server(answer)` starts a server that says these bytes and hangs up."""
    servers: list[asyncio.Server] = []

    async def start(answer: bytes) -> str:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(answer)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    yield start
    for server in servers:
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize("api", ["chat", "completions"])
async def test_a_report_equals_what_the_engine_counted(api: Any, start_engine: StartEngine) -> None:
    engine = await start_engine()

    report = await run_load(make_spec(url(engine), api=api))

    stats = engine.model.stats
    assert (report.sent, report.ok, report.failed) == (20, 20, 0)
    assert report.prompt_tokens == stats.prompt
    assert report.completion_tokens == stats.generation == 120
    assert report.cached_tokens == stats.prefix_hits
    assert report.prefix_hit_rate is not None
    assert 0 < report.prefix_hit_rate < 1
    assert report.output_tokens_per_second is not None
    assert report.e2e_seconds.p50 is not None


async def test_requests_alternate_between_two_routers(start_engine: StartEngine) -> None:
    engines = [await start_engine() for _ in range(2)]

    report = await run_load(make_spec(*(url(engine) for engine in engines)))

    assert report.ok == 20
    assert [engine.model.stats.finished["length"] for engine in engines] == [10, 10]


async def test_a_request_without_answer_goes_to_the_other_router(
    start_engine: StartEngine,
) -> None:
    engine = await start_engine()

    report = await run_load(make_spec(NOBODY, url(engine)))

    assert (report.ok, report.failed, report.retried_on_other_router) == (20, 0, 10)


async def test_with_one_router_that_is_gone_every_request_fails() -> None:
    report = await run_load(make_spec(NOBODY))

    assert report.failures_by_reason == {"connection": 20}
    assert report.ok == 0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\n{}", "http-503"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\ndata: {}\n\n\n\n", "incomplete-stream"),
        (
            b'HTTP/1.1 200 OK\r\ncontent-length: 21\r\n\r\ndata: {"error": {}}\n\n',
            "error-in-stream",
        ),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\ndata", "broken-answer"),
        (b"nonsense\r\n\r\n", "broken-answer"),
    ],
)
async def test_a_failure_is_named_by_its_reason(
    answer: bytes, reason: str, start_server: StartServer
) -> None:
    server = await start_server(answer)

    report = await run_load(make_spec(server, requests=3))

    assert report.failures_by_reason == {reason: 3}


async def test_an_answer_that_takes_too_long_is_a_timeout(start_engine: StartEngine) -> None:
    engine = await start_engine(speed=0.01)

    report = await run_load(make_spec(url(engine), requests=2, timeout_seconds=0.2))

    assert report.failures_by_reason == {"timeout": 2}


async def test_stopping_ends_the_sending_and_waits_for_answers(
    start_engine: StartEngine,
) -> None:
    engine = await start_engine()
    stop = asyncio.Event()
    seen: list[LoadProgress] = []

    def watch(progress: LoadProgress) -> None:
        seen.append(progress)
        stop.set()

    spec = make_spec(url(engine), requests=None, duration_seconds=600.0, rate=20.0)
    report = await run_load(spec, progress=watch, stop=stop)

    assert report.sent < 100
    assert report.failed == 0
    assert seen[-1].in_flight == 0
    assert seen[-1].ok == report.ok


async def test_a_run_without_end_keeps_only_its_latest_requests(
    start_engine: StartEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "MAX_OUTCOMES", 5)
    engine = await start_engine()
    seen: list[LoadProgress] = []

    report = await run_load(make_spec(url(engine)), progress=seen.append)

    assert (report.sent, report.forgotten) == (5, 15)
    assert seen[-1].ok == 20


def test_the_command_line_writes_a_report_and_fails_when_requests_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    options = ["--url", NOBODY, "--model", MODEL, "--rate", "100", "--requests", "2"]

    status = load.main([*options, "--report", str(file), "--progress", "json"])

    assert status == 1
    assert json.loads(file.read_text())["failures_by_reason"] == {"connection": 2}
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["failed"] == 2


@pytest.mark.parametrize(("option", "lines"), [([], 1), (["--quiet"], 0)])
def test_progress_goes_to_standard_error_unless_it_is_to_be_quiet(
    option: list[str], lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--url", NOBODY, "--model", MODEL, "--rate", "100", "--requests", "2"]

    load.main([*options, *option])

    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == lines
    assert json.loads(captured.out)["sent"] == 2


def test_a_load_that_cannot_be_sent_is_refused_with_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = load.main(["--url", "ftp://x", "--model", MODEL, "--rate", "1", "--requests", "1"])

    assert status == 2
    assert "'ftp://x' is not of the form" in capsys.readouterr().err


async def test_more_requests_than_the_bound_are_not_sent(start_engine: StartEngine) -> None:
    engine = await start_engine(speed=1.0)

    report = await run_load(make_spec(url(engine), max_in_flight=5))

    assert report.failures_by_reason.get("generator-full", 0) > 0
    assert report.ok >= 5
