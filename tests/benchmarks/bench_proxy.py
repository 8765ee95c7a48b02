"""CPU time of the embedded proxy per request and per streamed event, on loopback.

    python tests/benchmarks/bench_proxy.py [--cases n1k,n30k,s1k,b1k] [--requests 3000]

It starts a process of eight scripted engines and, in turn, a relay without any logic (`floor`: what
sockets and the event loop cost on this machine) and a router, and drives them itself. CPU time is
user plus system time of that process from /proc, so the load beside it does not count.

Cases: `n` whole answers, `s` streams of 200 events paced at 2 ms, `b` the same in one burst; `1k`
and `30k` are body sizes. Bodies: 64 conversations in 8 groups that share a quarter of the prompt.
Only figures of one run compare; repeat on an idle machine and take the least.
"""

import argparse
import asyncio
import hashlib
import http.client
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import uvloop

ROOT = Path(__file__).resolve().parents[2]
ENGINES = 8
EVENTS = 200
PACE_SECONDS = 0.002
TICKS = os.sysconf("SC_CLK_TCK")
SECRET, TOKEN, MODEL = "sk-bench", "token-of-the-bench", "granite-4.1-8b"
CASES = {
    "n1k": (1_000, 32),
    "n30k": (30_000, 32),
    "s1k": (1_000, 64),
    "s30k": (30_000, 64),
    "b1k": (1_000, 16),
    "s1k-c1000": (1_000, 1000),
}


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def event(**more: Any) -> bytes:
    """One server-sent event in the form and size of vLLM's."""
    choice = {
        "index": 0,
        "delta": {"content": " word"},
        "logprobs": None,
        "finish_reason": None,
        "token_ids": None,
    }
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": MODEL,
        "choices": [choice],
    }
    return b"data: %b\n\n" % compact(chunk | more)


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


USAGE = {"prompt_tokens": 250, "total_tokens": 450, "completion_tokens": 200}
MESSAGE = {"role": "assistant", "content": "word " * 200}
WHOLE = compact({"id": "chatcmpl-1", "choices": [{"message": MESSAGE}], "usage": USAGE})
METRICS = b'#\nvllm:num_requests_running{engine="0"} 1.0\n'
EVENT = chunked(event())
LAST = chunked(event(choices=[], usage=USAGE) + b"data: [DONE]\n\n") + b"0\r\n\r\n"
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


class FakeEngine(asyncio.Protocol):
    """Answers every complete request with fixed bytes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self.buffer[:end]).lower()
        length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        if len(self.buffer) < end + 4 + length:
            return
        body = bytes(self.buffer[end + 4 : end + 4 + length])
        self.buffer.clear()
        if b'"stream":true' in body:
            self.stream(is_burst=b'"user":"burst"' in body)
            return
        whole = WHOLE if length else METRICS
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self.transport.write(head % len(whole) + whole)

    def stream(self, *, is_burst: bool) -> None:
        self.transport.write(STREAM_HEAD)
        self.left = EVENTS
        if is_burst:
            self.transport.write(EVENT * EVENTS)
            self.left = 0
        self.tick()

    def tick(self) -> None:
        if self.left > 0:
            self.left -= 1
            self.transport.write(EVENT)
            asyncio.get_running_loop().call_later(PACE_SECONDS, self.tick)
        else:
            self.transport.write(LAST)


async def serve_engines() -> None:
    """Role of the second process: listen on eight free ports and tell them."""
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(FakeEngine, "127.0.0.1", 0) for _ in range(ENGINES)]
    say([server.sockets[0].getsockname()[1] for server in servers])
    await asyncio.Event().wait()


@dataclass
class Load:
    """What is left to send, and what came back."""

    queue: list[bytes]
    delays: list[float] = field(default_factory=list)
    events: int = 0
    answers: int = 0


class LoadConnection(asyncio.Protocol):
    """Sends the next request as soon as the answer to the last one is complete."""

    def __init__(self, load: Load, done: "asyncio.Future[None]") -> None:
        self.load, self.done = load, done
        self.tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.send()

    def send(self) -> None:
        if self.load.queue:
            self.is_first, self.tail = True, b""
            self.started = time.perf_counter()
            self.transport.write(self.load.queue.pop())
        else:
            self.transport.close()
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self.is_first:
            self.is_first = False
            self.load.delays.append(time.perf_counter() - self.started)
            if not data.startswith(b"HTTP/1.1 200"):
                self.done.set_exception(RuntimeError(data[:500]))
                return
            self.is_stream = b"transfer-encoding: chunked" in data
        self.load.events += data.count(b"\n\n")
        self.tail = (self.tail + data)[-8:]
        if self.tail.endswith(b"0\r\n\r\n" if self.is_stream else b"}}"):
            self.load.answers += 1
            self.send()


def requests(case: str, count: int) -> list[bytes]:
    """Requests of a case, as bytes."""
    size, _ = CASES[case]
    made = []
    for number in range(count):
        shared = f"group {number % 8} " * (size // 8)
        own = f"conversation {number % 64} " * (size // 14)
        messages = [
            {"role": "system", "content": shared[: size // 4]},
            {"role": "user", "content": own[: size - size // 4]},
        ]
        body: dict[str, Any] = {"model": MODEL, "messages": messages, "max_tokens": 200}
        if case[0] in "sb":
            body |= {"stream": True, "user": "burst" if case[0] == "b" else "paced"}
        raw = compact(body)
        lines = [
            "POST /v1/chat/completions HTTP/1.1",
            f"host: bench\r\nauthorization: Bearer {SECRET}",
            f"content-type: application/json\r\ncontent-length: {len(raw)}\r\n\r\n",
        ]
        made.append("\r\n".join(lines).encode() + raw)
    return made


async def drive(port: int, case: str, count: int) -> Load:
    """Run a case with its number of connections."""
    load, loop = Load(requests(case, count)), asyncio.get_running_loop()
    done = [loop.create_future() for _ in range(min(count, CASES[case][1]))]
    for future in done:
        await loop.create_connection(
            lambda future=future: LoadConnection(load, future), "127.0.0.1", port
        )
    await asyncio.gather(*done)
    return load


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def measure(pid: int, port: int, case: str, *, name: str, count: int) -> dict[str, Any]:
    """Warm up, run, and account the process's CPU time."""
    count = count if case[0] == "n" else max(64, count // 6, CASES[case][1])
    uvloop.run(drive(port, case, 64))
    before, began = cpu_seconds(pid), time.perf_counter()
    load = uvloop.run(drive(port, case, count))
    spent, elapsed = cpu_seconds(pid) - before, time.perf_counter() - began
    figures = {
        "case": case,
        "name": name,
        "requests": load.answers,
        "events": load.events,
        "cpu_us_per_request": round(1e6 * spent / load.answers, 1),
        "requests_per_second": round(load.answers / elapsed, 1),
        "first_byte_ms_p50": round(1000 * sorted(load.delays)[len(load.delays) // 2], 2),
        "rss_mib": round(resident_mib(pid), 1),
    }
    if load.events > load.answers:
        # The request's own cost is in it, too: an upper bound.
        figures["cpu_us_per_event"] = round(1e6 * spent / load.events, 2)
    return figures


def pool_document(ports: list[int], policy: str) -> bytes:
    shared = {"instance": "1", "engine": "vllm", "role": "both", "vendor": "nvidia", "node": "n"}
    sizes = {"block_size_tokens": 16, "kv_capacity_tokens": 500_000, "max_sequences": 1024}
    place = {"speed_class": "c", "site": "s", "kv_contract": {"engine": "vllm"}}
    speed = {
        "prefill_tokens_per_second": 20_000,
        "step_seconds": 0.01,
        "step_seconds_per_sequence": 1e-4,
        "step_seconds_per_context_token": 1e-8,
        "kv_bytes_per_token": 100_000,
    }
    key = {"id": "k", "sha256": hashlib.sha256(SECRET.encode()).hexdigest()}
    return compact(
        {
            "pool": "bench",
            "version": 1,
            "author": "bench",
            "created_at": "2026-11-30T00:00:00Z",
            "role_mode": "unified",
            "models": [{"name": MODEL, "max_model_len": 131072}],
            "endpoints": [
                {"id": f"e{port}", "url": f"http://127.0.0.1:{port}"} | shared | sizes | place
                for port in ports
            ],
            "speed_classes": {"c": speed},
            "policy": {"name": policy},
            "keys": [key | {"tenant": "t", "project": "p"}],
        }
    )


def say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def start(*arguments: str) -> tuple[subprocess.Popen[bytes], Any]:
    """Start a process of ours and read its first line, JSON."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, cwd=ROOT)
    if process.stdout is None:
        raise RuntimeError("The process has no output.")
    return process, json.loads(process.stdout.readline())


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.communicate(timeout=20)


def start_router(folder: str, ports: list[int], policy: str) -> tuple[subprocess.Popen[bytes], int]:
    router, ready = launch_router(folder, ports, policy)
    return router, ready["port"]


def launch_router(
    folder: str, ports: list[int], policy: str, *options: str
) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """A router with the document of these engines, and what it said of itself."""
    token = Path(folder) / "token"
    token.write_text(TOKEN)
    router, ready = start(
        *("-m", "routing.servers", "--name", "bench", "--port", "0", "--admin-port", "0"),
        *("--state-dir", f"{folder}/state", "--admin-token-file", str(token)),
        *options,
    )
    admin = http.client.HTTPConnection("127.0.0.1", ready["admin_port"], timeout=5)
    authorized = {"authorization": f"Bearer {TOKEN}"}
    admin.request("PUT", "/admin/pool-document", pool_document(ports, policy), authorized)
    if admin.getresponse().status != 200:
        raise RuntimeError("The router refused the document.")
    admin.close()
    return router, ready


def compare(options: argparse.Namespace, folder: str) -> None:
    """Measure the floor and the router, case by case."""
    engines, ports = start(str(Path(__file__)), "--role", "engines")
    floor, ready = start(str(Path(__file__).with_name("floor.py")), *map(str, ports))
    router, port = start_router(folder, ports, options.policy)
    try:
        for case in options.cases.split(","):
            count = options.requests
            say(measure(floor.pid, ready["port"], case, name="floor", count=count))
            say(measure(router.pid, port, case, name=options.policy, count=count))
    finally:
        for process in (router, floor, engines):
            stop(process)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--role", choices=["bench", "engines"], default="bench")
    parser.add_argument("--cases", default="n1k,n30k,s1k,b1k")
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--policy", default="consort")
    options = parser.parse_args()
    if options.role == "engines":
        uvloop.run(serve_engines())
    else:
        with tempfile.TemporaryDirectory() as folder:
            compare(options, folder)


if __name__ == "__main__":
    main()
