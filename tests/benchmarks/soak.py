"""Soak: a thousand streams at once while engines die, event publishers restart and clients leave.

    python -m tests.benchmarks.soak [--minutes 20] [--warm-up 5] [--streams 1000] [--continue]

Real processes on loopback: 20 simulated engines, one router. A twentieth of the clients leave in
the middle of their stream; every minute one engine is killed and, ten seconds later, started again
and announced with a next document; every minute another engine's publisher of cache events starts
anew. Each answer is compared with the text that its prompt must give. At the end nothing may be
left of what is gone. The outcome goes to `var/bench/soak.json`; the exit status is 1 when a rule
was broken.
"""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

from routing.testbed import tokens as tk
from tests.benchmarks import fleet, processes
from tests.benchmarks.fleet import KEY, MODEL, Engine, Fleet, Router

OUT = Path("var/bench/soak.json")
GROUPS, SHARED_TOKENS, OWN_TOKENS = 60, 160, 40
PROMPTS = 1000
"""Different ones: few enough that each was asked several times before memory is judged."""
ABORTED_SHARE = 0.05
EXACT_ENDS = frozenset({"complete", "error-event", "refused"})
ALLOWED_STATUS = frozenset({429, 502, 503})
STREAM_SECONDS = 300.0
DOWN_SECONDS = 10.0
GROWTH_ALLOWED = 0.05


@dataclass(slots=True)
class Tally:
    """What became of the requests."""

    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Answers that were none of what is allowed, the first few in words."""
    memory: list[float] = field(default_factory=list)
    """MB of the router, once a second, from the end of the warm-up on."""
    kills: int = 0
    restarts: int = 0

    def note(self, end: str, detail: str = "") -> None:
        """Count an end; everything but the allowed ones is a fault."""
        self.ends[end] += 1
        if end not in EXACT_ENDS and end != "aborted" and len(self.wrong) < 20:
            self.wrong.append(f"{end}: {detail}"[:300])


def prompt(number: int) -> tuple[str, str]:
    """System and user text of a request."""
    group = np.random.default_rng(number % GROUPS).integers(0, len(tk.PIECES), SHARED_TOKENS)
    own = np.random.default_rng(10_000 + number).integers(0, len(tk.PIECES), OWN_TOKENS)
    return _text(group), _text(own)


def _text(numbers: Any) -> str:
    return b"".join(tk.PIECES[number] for number in numbers).decode()


def expected(system: str, user: str, length: int) -> str:
    """The text that every simulated engine answers to these messages."""
    segments = tk.chat_segments([("system", system), ("user", user)])
    key, spoken = tk.spoken_answer(tk.tokenize(segments))
    numbers = (tk.answer_piece(key, spoken + position) for position in range(length))
    return _text(numbers)


async def one_request(router: Router, number: int, tally: Tally, rng: np.random.Generator) -> None:
    """One stream, read to its end or left in the middle."""
    system, user = prompt(number)
    length = int(rng.integers(20, 120))
    leave_after = int(rng.integers(1, length)) if rng.random() < ABORTED_SHARE else None
    body = json.dumps(
        {
            "model": MODEL, "stream": True, "temperature": 0, "ignore_eos": True,
            "max_tokens": length,
            "messages": [
                {"role": "system", "content": system}, {"role": "user", "content": user},
            ],
        }
    ).encode()  # fmt: skip
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: soak\r\nauthorization: Bearer {KEY}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    ).encode()
    try:
        async with asyncio.timeout(STREAM_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", router.port)
            try:
                writer.write(head + body)
                await _read(reader, tally, expected(system, user, length), leave_after)
            finally:
                writer.close()
    except TimeoutError:
        tally.note("timeout", f"request {number} did not end in {STREAM_SECONDS:g} s")
    except OSError as error:
        tally.note("connection", f"{error}")


async def _read(
    reader: asyncio.StreamReader, tally: Tally, text: str, leave_after: int | None
) -> None:
    status = int((await reader.readline()).split()[1])
    headers = b""
    while (line := await reader.readline()) not in (b"\r\n", b""):
        headers += line.lower()
    if status != 200:
        answer = await reader.read()
        is_allowed = status in ALLOWED_STATUS and b'"error"' in answer
        tally.note("refused" if is_allowed else f"status-{status}", repr(answer[:200]))
        return
    said, events, has_error, is_done = [], 0, False, False
    while line := await reader.readline():
        if not line.startswith(b"data: "):
            continue
        if line.startswith(b"data: [DONE]"):
            is_done = True
            break
        event = json.loads(line[6:])
        has_error |= "error" in event
        said += [choice["delta"].get("content") or "" for choice in event.get("choices", ())]
        events += 1
        if leave_after is not None and events > leave_after:
            tally.note("aborted")
            return
    _judge("".join(said), text, tally, has_error=has_error, is_done=is_done)


def _judge(said: str, text: str, tally: Tally, *, has_error: bool, is_done: bool) -> None:
    if not text.startswith(said):
        tally.note("mixed-up", f"got {said[:60]!r}, wanted {text[:60]!r}")
    elif has_error:
        tally.note("error-event")
    elif is_done and said == text:
        tally.note("complete")
    else:
        tally.note("cut", f"{len(said)} of {len(text)} characters, done {is_done}")


async def keep_streaming(
    router: Router, tally: Tally, *, streams: int, until: float, seed: int
) -> None:
    """A fixed number of clients, each with one request after the other."""

    async def client(index: int) -> None:
        rng = np.random.default_rng(seed + index)
        await asyncio.sleep(float(rng.random()) * 5)
        while time.monotonic() < until:
            await one_request(router, int(rng.integers(0, PROMPTS)), tally, rng)

    await asyncio.gather(*(client(index) for index in range(streams)))


async def make_trouble(pool: Fleet, router: Router, tally: Tally, *, until: float) -> None:
    """Every minute a killed engine and a restarted publisher, as they happen in a week."""
    rng = np.random.default_rng(1)
    await asyncio.sleep(20)
    while time.monotonic() < until - 30:
        victim, other = rng.choice(len(pool.running), 2, replace=False)
        await _kill_and_restart(pool, router, pool.running[int(victim)])
        tally.kills += 1
        pool.running[int(other)].process.send_signal(signal.SIGUSR1)
        tally.restarts += 1
        await asyncio.sleep(60 - DOWN_SECONDS)


async def _kill_and_restart(pool: Fleet, router: Router, engine: Engine) -> None:
    pool.kill_engine(engine)
    await asyncio.sleep(DOWN_SECONDS)
    await asyncio.to_thread(pool.restart_engine, engine)
    await asyncio.to_thread(pool.push, router)


async def watch_memory(router: Router, tally: Tally, *, warm_up_seconds: float) -> None:
    """Resident memory of the router, once a second, when its bounded stores have filled."""
    await asyncio.sleep(warm_up_seconds)
    while True:
        tally.memory.append(processes.resident_bytes(router.process.pid) / 1e6)
        await asyncio.sleep(1)


async def soak(pool: Fleet, router: Router, options: argparse.Namespace) -> Tally:
    """All of it, until the time is over and every stream ended."""
    tally = Tally()
    warm_up_seconds = options.warm_up * 60
    until = time.monotonic() + warm_up_seconds + options.minutes * 60
    watching = watch_memory(router, tally, warm_up_seconds=warm_up_seconds)
    watcher = asyncio.create_task(watching)
    async with asyncio.TaskGroup() as group:
        # Trouble that cannot be made ends the run at once: it would pass too easily.
        group.create_task(make_trouble(pool, router, tally, until=until))
        group.create_task(
            keep_streaming(router, tally, streams=options.streams, until=until, seed=options.seed)
        )
    watcher.cancel()
    return tally


def faults(tally: Tally, state: dict[str, Any]) -> list[str]:
    """Every rule that was broken, as a sentence."""
    found = [f"An answer was wrong. {wrong}" for wrong in tally.wrong]
    if state["leases_open"]:
        found.append(f"{state['leases_open']} leases are open, though no request runs.")
    found += [
        f"{endpoint['id']} is believed to have work."
        for endpoint in state["pools"]["fleet"]["endpoints"]
        if endpoint["inflight_requests"] or endpoint["inflight_prefill_tokens"]
    ]
    warm = tally.memory[len(tally.memory) // 4 : len(tally.memory) // 2]
    late = tally.memory[3 * len(tally.memory) // 4 :]
    before, after = float(np.median(warm)), float(np.median(late))
    if after > before * (1 + GROWTH_ALLOWED):
        found.append(f"Memory grew from {before:.1f} to {after:.1f} MB.")
    return found


def main() -> int:
    """Run and judge."""
    options = _parser().parse_args()
    events = ("--kv-events-port", "0", "--kv-replay-port", "0")
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as folder,
        Fleet(folder=Path(folder), speed=options.speed, engine_options=events) as pool,
    ):
        router = pool.start_router("soak")
        pool.changes = {
            "limits": {"streams_continue": options.streams_continue},
            "prompt_identity": {"mode": options.identity},
            # The ring of records is full after two minutes, so within the warm-up.
            "recording": {"sample_rate": 1.0},
        }
        pool.push(router)
        spent = fleet.cpu_seconds(router.process)
        tally = uvloop.run(soak(pool, router, options))
        spent = fleet.cpu_seconds(router.process) - spent
        time.sleep(5)
        state = fleet.admin(router, "GET", "/admin/state")
    found = faults(tally, state)
    result = {
        "options": vars(options),
        "ends": dict(tally.ends),
        "kills": tally.kills,
        "publisher_restarts": tally.restarts,
        "memory_mb": {
            "each_minute": [float(np.median(part)) for part in _minutes(tally.memory)],
            "median_of_second_quarter": float(
                np.median(tally.memory[len(tally.memory) // 4 : len(tally.memory) // 2])
            ),
            "median_of_last_quarter": float(np.median(tally.memory[3 * len(tally.memory) // 4 :])),
            "most": max(tally.memory),
        },
        "router_cpu_seconds": spent,
        "leases_open": state["leases_open"],
        "events": [one.get("events") for one in state["pools"]["fleet"]["endpoints"]],
        "faults": found,
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2, default=str) + "\n")
    print(json.dumps({key: result[key] for key in result if key != "events"}, indent=1))
    return 1 if found else 0


def _minutes(seconds: list[float]) -> list[list[float]]:
    return [seconds[start : start + 60] for start in range(0, len(seconds), 60)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--warm-up", type=float, default=5.0, help="minutes before, not judged")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--speed", type=float, default=0.04, help="model seconds per second")
    parser.add_argument("--identity", default="engine", choices=["bytes", "engine"])
    parser.add_argument("--continue", dest="streams_continue", action="store_true")
    parser.add_argument("--seed", type=int, default=3)
    return parser


if __name__ == "__main__":
    sys.exit(main())
