"""Load generator: open-loop traffic with shared prefixes against a router or an engine.

    python -m routing.testbed.load --url http://127.0.0.1:8080 --model granite-4.1-8b \\
        --rate 30 --requests 600 --report report.json

With two URLs requests alternate between them; one that gets no answer at all is sent again to the
other, once. SIGINT or SIGTERM ends the sending; requests under way are waited for first.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

from routing.testbed.load_client import BrokenAnswerError, NoAnswerError, Reply, Target
from routing.testbed.load_plan import (
    APIS,
    ARRIVALS,
    LoadSpec,
    LoadSpecError,
    arrival_times,
    request_body,
)
from routing.testbed.load_report import LoadProgress, LoadReport, Outcome, Targets, summarize

CONNECT_SECONDS = 2.0
PROGRESS_SECONDS = 1.0
MAX_OUTCOMES = 200_000
"""A run without end keeps this many of its latest requests: about 60 MB, two hours at 30/s."""

Progress = Callable[[LoadProgress], None]


async def run_load(
    spec: LoadSpec,
    *,
    progress: Progress | None = None,
    stop: asyncio.Event | None = None,
    ended: Callable[[Outcome], None] | None = None,
) -> LoadReport:
    """Send the load and wait for all answers; `stop` ends the sending early.

    `progress` is called about once a second and at the end, `ended` with each request that was
    sent. Raises LoadSpecError.
    """
    spec.check()
    run = _Run(spec, progress=progress, stop=stop or asyncio.Event())
    if ended:
        run.ended = ended
    return await run.run()


def _nobody(outcome: Outcome) -> None:
    """Nobody wants to know."""


class _Run:
    def __init__(self, spec: LoadSpec, *, progress: Progress | None, stop: asyncio.Event) -> None:
        self._spec = spec
        self.ended: Callable[[Outcome], None] = _nobody
        self._progress = progress
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._outcomes: deque[Outcome] = deque(maxlen=MAX_OUTCOMES)
        self._sent = self._ok = self._failed = self._retried = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._lag = 0.0
        self._started = perf_counter()
        self._targets = [
            Target(url, path=spec.path, key=spec.key, connect_seconds=CONNECT_SECONDS)
            for url in spec.urls
        ]

    async def run(self) -> LoadReport:
        watcher = self._loop.create_task(self._report_progress())
        try:
            await self._send_all()
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            watcher.cancel()
            for task in self._tasks:
                task.cancel()
            for target in self._targets:
                target.close()
        self._tell()
        return summarize(
            self._outcomes,
            max_send_lag_seconds=self._lag,
            forgotten=self._sent - len(self._outcomes),
            targets=_targets(self._spec),
        )

    async def _send_all(self) -> None:
        for index, offset in enumerate(arrival_times(self._spec)):
            # Prepared before its time, so that building a prompt does not delay it.
            body = request_body(self._spec, index)
            due = self._started + offset
            if await self._stopped_before(due):
                return
            self._lag = max(self._lag, perf_counter() - due)
            self._send(index, body)

    def _send(self, index: int, body: bytes) -> None:
        outcome = Outcome(index=index, sent_at=perf_counter())
        self._outcomes.append(outcome)
        self._sent += 1
        if len(self._tasks) >= self._spec.max_in_flight:
            outcome.failure = "generator-full"
            self._failed += 1
            return
        task = self._loop.create_task(self._one(outcome, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _one(self, outcome: Outcome, body: bytes) -> None:
        try:
            async with asyncio.timeout(self._spec.timeout_seconds):
                reply = await self._post(outcome, body)
        except TimeoutError:
            outcome.failure = "timeout"
        except NoAnswerError:
            outcome.failure = "connection"
        except BrokenAnswerError:
            outcome.failure = "broken-answer"
        else:
            self._take(outcome, reply)
        self._ok += outcome.ok
        self._failed += not outcome.ok
        self._retried += outcome.retried
        self.ended(outcome)

    async def _post(self, outcome: Outcome, body: bytes) -> Reply:
        request_id = f"load-{self._spec.seed}-{outcome.index}"
        first = outcome.index % len(self._targets)
        try:
            return await self._targets[first].post(body, request_id=request_id)
        except NoAnswerError:
            if len(self._targets) < 2:
                raise
        outcome.retried = True
        other = (first + 1) % len(self._targets)
        return await self._targets[other].post(body, request_id=request_id)

    def _take(self, outcome: Outcome, reply: Reply) -> None:
        outcome.ended_at = perf_counter()
        outcome.first_at, outcome.last_at = reply.first_at, reply.last_at
        outcome.failure = reply.failure()
        usage = reply.usage() or {}
        outcome.prompt_tokens = usage.get("prompt_tokens")
        outcome.completion_tokens = usage.get("completion_tokens")
        outcome.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")

    async def _stopped_before(self, due: float) -> bool:
        left = due - perf_counter()
        if left > 0 and not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._stop.wait()
        return self._stop.is_set()

    async def _report_progress(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            self._tell()

    def _tell(self) -> None:
        if self._progress is None:
            return
        self._progress(
            LoadProgress(
                elapsed_seconds=perf_counter() - self._started,
                sent=self._sent,
                ok=self._ok,
                failed=self._failed,
                in_flight=self._sent - self._ok - self._failed,
                retried_on_other_router=self._retried,
            )
        )


def _targets(spec: LoadSpec) -> Targets | None:
    if spec.slo_ttft_seconds is None and spec.slo_tpot_seconds is None:
        return None
    return Targets(spec.slo_ttft_seconds, spec.slo_tpot_seconds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a load: 0 when no request failed, 1 when some did, 2 when it cannot be sent."""
    options = vars(_parser().parse_args(arguments))
    report_file: Path | None = options.pop("report")
    progress = _PROGRESS[options.pop("progress")]
    spec = LoadSpec(urls=tuple(options.pop("url")), **options)
    try:
        spec.check()
    except LoadSpecError as error:
        print(f"The load cannot be sent: {error}", file=sys.stderr)
        return 2
    report = _run(spec, progress)
    text = json.dumps(report.to_json(), indent=2)
    if report_file is None:
        print(text)
    else:
        report_file.write_text(text + "\n", encoding="utf-8")
    return 1 if report.failed else 0


def _run(spec: LoadSpec, progress: Progress | None) -> LoadReport:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_until_signal(spec, progress))


async def _until_signal(spec: LoadSpec, progress: Progress | None) -> LoadReport:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return await run_load(spec, progress=progress, stop=stop)


def _print_progress(progress: LoadProgress) -> None:
    print(
        f"{progress.elapsed_seconds:6.0f} s  sent {progress.sent}  ok {progress.ok}  "
        f"failed {progress.failed}  in flight {progress.in_flight}",
        file=sys.stderr,
        flush=True,
    )


def _print_json(progress: LoadProgress) -> None:
    print(json.dumps(asdict(progress)), file=sys.stderr, flush=True)


_PROGRESS: dict[str, Progress | None] = {
    "text": _print_progress,
    "json": _print_json,
    "none": None,
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="routing.testbed.load", description="Load generator.")
    add = parser.add_argument
    add("--url", action="append", required=True, help="http://host:port; twice for two routers")
    add("--key", help="inference key, sent as Bearer token")
    add("--model", required=True, help="model to ask for")
    add("--api", choices=APIS, default="chat", help="which API to call")
    add("--timeout", dest="timeout_seconds", type=float, default=300.0, help="seconds a request")
    add("--report", type=Path, help="file for the report; standard output when absent")
    add("--quiet", dest="progress", action="store_const", const="none", default="text")
    add("--progress", choices=sorted(_PROGRESS), default="text", help="a line a second on stderr")
    _add_shape(parser)
    return parser


def _add_shape(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--rate", type=float, required=True, help="requests per second")
    add("--arrivals", choices=ARRIVALS, default="poisson", help="spacing of requests")
    add("--requests", type=int, help="number of requests")
    add("--duration", dest="duration_seconds", type=float, help="seconds of sending")
    add("--groups", type=int, default=150, help="system prompts")
    add("--prompts-per-group", type=int, default=5, help="questions per system prompt")
    add("--system-tokens", type=int, default=6000, help="length of a system prompt")
    add("--question-tokens", type=int, default=1200, help="length of a question")
    add("--output-tokens", type=int, default=150, help="length of an answer")
    add("--seed", type=int, default=7, help="same seed, same bytes at the same times")
    add("--slo-ttft", dest="slo_ttft_seconds", type=float, help="target of goodput, seconds")
    add("--slo-tpot", dest="slo_tpot_seconds", type=float, help="target of goodput, seconds")
    add("--max-in-flight", type=int, default=4096, help="bound on open requests")


if __name__ == "__main__":
    sys.exit(main())
