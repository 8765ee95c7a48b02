"""CPU time of the embedded proxy per request and per streamed event, on loopback.

    python tests/benchmarks/bench_proxy.py [--cases n1k,n30k,s1k,b1k] [--requests 3000] [--policy consort]

It starts a router process, a process of eight scripted engines, and drives them itself. CPU time is
user plus system time of the router process from /proc, so that the load beside it does not count.
Cases: `n` whole answers, `s` streams of 200 events paced at 2 ms, `b` the same in one burst; `1k` and
`30k` are body sizes. Bodies: 64 conversations in 8 groups that share a quarter of the prompt. Only
figures of one run compare; repeat on an idle machine and take the least.
"""

import argparse
import asyncio
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
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
}

_USAGE = b'"usage":{"prompt_tokens":250,"total_tokens":450,"completion_tokens":200}'
_WHOLE = (
    b'{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"%b"},"finish_reason":"length"}],%b}'
    % (b"word " * 200, _USAGE)
)
_EVENT = b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"granite-4.1-8b","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":null}]}\n\n'
_LAST = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"granite-4.1-8b","choices":[],%b}\n\ndata: [DONE]\n\n'
    % _USAGE
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
        else:
            whole = _WHOLE if length else b'#\nvllm:num_requests_running{engine="0"} 1.0\n'
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
                % (len(whole), whole)
            )

    def stream(self, *, is_burst: bool) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        self.left = EVENTS
        if is_burst:
            self.transport.write(
                b"".join(b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT) for _ in range(EVENTS))
            )
            self.left = 0
        self.tick()

    def tick(self) -> None:
        if self.left > 0:
            self.left -= 1
            self.transport.write(b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT))
            asyncio.get_running_loop().call_later(PACE_SECONDS, self.tick)
        else:
            self.transport.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(_LAST), _LAST))


async def serve_engines() -> None:
    """Role of the second process: listen on eight free ports and tell them."""
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(FakeEngine, "127.0.0.1", 0) for _ in range(ENGINES)]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


class LoadConnection(asyncio.Protocol):
    """Sends the next request as soon as the answer to the last one is complete."""

    def __init__(self, queue: list[bytes], done: asyncio.Event) -> None:
        self.queue, self.done = queue, done
        self.buffer = bytearray()
        self.first_delays: list[float] = []
        self.events = self.answers = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.send()

    def send(self) -> None:
        if self.queue:
            self.is_first = True
            self.started = time.perf_counter()
            self.transport.write(self.queue.pop())
        else:
            self.done.set()

    def data_received(self, data: bytes) -> None:
        if self.is_first:
            self.is_first = False
            self.first_delays.append(time.perf_counter() - self.started)
            if not data.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(data[:500])
        self.buffer += data
        self.events += data.count(b"\n\n")
        if self.is_complete():
            self.buffer.clear()
            self.answers += 1
            self.send()

    def is_complete(self) -> bool:
        if self.buffer.endswith(b"0\r\n\r\n"):
            return True
        end = self.buffer.find(b"\r\n\r\n")
        declared = bytes(self.buffer[:end]).partition(b"content-length: ")[2]
        return bool(declared) and len(self.buffer) >= end + 4 + int(declared.split(b"\r\n")[0])


def requests(case: str, count: int) -> list[bytes]:
    """Requests of a case, as bytes."""
    size, _ = CASES[case]
    made = []
    for number in range(count):
        group = f"group {number % 8} " * (size // 36)
        own = f"conversation {number % 64} " * (size // 22)
        body: dict[str, Any] = {
            "model": MODEL,
            "messages": [
                {"role": "system", "content": group[: size // 4]},
                {"role": "user", "content": own[: size - size // 4]},
            ],
            "max_tokens": 200,
        }
        if case[0] in "sb":
            body |= {"stream": True, "user": "burst" if case[0] == "b" else "paced"}
        raw = json.dumps(body, separators=(",", ":")).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {SECRET}\r\ncontent-type: application/json\r\ncontent-length: {len(raw)}\r\n\r\n"
        made.append(head.encode() + raw)
    return made


async def drive(port: int, case: str, count: int) -> tuple[int, int, list[float]]:
    """Run a case; answers, events and delays of the first byte."""
    queue, loop = requests(case, count), asyncio.get_running_loop()
    done = [asyncio.Event() for _ in range(CASES[case][1])]
    connections = []
    for event in done:
        _, connection = await loop.create_connection(
            lambda event=event: LoadConnection(queue, event), "127.0.0.1", port
        )
        connections.append(connection)
    await asyncio.gather(*(event.wait() for event in done))
    for connection in connections:
        connection.transport.close()
    delays = sorted(delay for one in connections for delay in one.first_delays)
    return sum(one.answers for one in connections), sum(one.events for one in connections), delays


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def pool_document(ports: list[int], policy: str) -> bytes:
    endpoints = [
        {
            "id": f"e{port}",
            "url": f"http://127.0.0.1:{port}",
            "instance": "1",
            "engine": "vllm",
            "role": "both",
            "vendor": "nvidia",
            "speed_class": "c",
            "node": "n",
            "site": "s",
            "block_size_tokens": 16,
            "kv_capacity_tokens": 500_000,
            "kv_contract": {"engine": "vllm"},
        }
        for port in ports
    ]
    speed = {
        "prefill_tokens_per_second": 20_000,
        "step_seconds": 0.01,
        "step_seconds_per_sequence": 1e-4,
        "step_seconds_per_context_token": 1e-8,
        "kv_bytes_per_token": 100_000,
    }
    key = {
        "id": "k",
        "sha256": hashlib.sha256(SECRET.encode()).hexdigest(),
        "tenant": "t",
        "project": "p",
    }
    return json.dumps(
        {
            "pool": "bench",
            "version": 1,
            "author": "bench",
            "created_at": "2026-11-30T00:00:00Z",
            "role_mode": "unified",
            "models": [{"name": MODEL, "max_model_len": 131072}],
            "endpoints": endpoints,
            "speed_classes": {"c": speed},
            "policy": {"name": policy},
            "keys": [key],
        }
    ).encode()


def start(*arguments: str) -> tuple[subprocess.Popen[bytes], Any]:
    """Start a process of ours and read its first line, JSON."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, cwd=ROOT)  # noqa: S603 - our own programs
    if process.stdout is None:
        raise RuntimeError("The process has no output.")
    return process, json.loads(process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--role", choices=["bench", "engines"], default="bench")
    parser.add_argument("--cases", default="n1k,n30k,s1k,b1k")
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--policy", default="consort")
    options = parser.parse_args()
    if options.role == "engines":
        uvloop.run(serve_engines())
        return
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text(TOKEN)
        engines, ports = start(str(Path(__file__)), "--role", "engines")
        router, ready = start(
            "-m",
            "routing.servers",
            "--name",
            "bench",
            "--port",
            "0",
            "--admin-port",
            "0",
            "--state-dir",
            f"{folder}/state",
            "--admin-token-file",
            str(token),
            "--log-level",
            "warning",
        )
        try:
            push = urllib.request.Request(
                f"http://127.0.0.1:{ready['admin_port']}/admin/pool-document",
                pool_document(ports, options.policy),
                {"authorization": f"Bearer {TOKEN}"},
                method="PUT",
            )  # noqa: S310 - loopback
            urllib.request.urlopen(push, timeout=5).close()  # noqa: S310 - loopback
            for case in options.cases.split(","):
                sys.stdout.write(
                    json.dumps(measure(router.pid, ready["port"], case, options)) + "\n"
                )
                sys.stdout.flush()
        finally:
            for process in (router, engines):
                process.terminate()
                process.wait(20)
                if process.stdout:
                    process.stdout.close()


def measure(pid: int, port: int, case: str, options: argparse.Namespace) -> dict[str, Any]:
    """Warm up, run, and account the router's CPU time."""
    count = options.requests if case[0] == "n" else max(64, options.requests // 6)
    uvloop.run(drive(port, case, 64))
    before, began = cpu_seconds(pid), time.perf_counter()
    answers, events, delays = uvloop.run(drive(port, case, count))
    spent, elapsed = cpu_seconds(pid) - before, time.perf_counter() - began
    figures = {
        "case": case,
        "policy": options.policy,
        "requests": answers,
        "events": events,
        "cpu_us_per_request": round(1e6 * spent / answers, 1),
        "requests_per_second": round(answers / elapsed, 1),
        "first_byte_ms_p50": round(1000 * delays[len(delays) // 2], 2),
        "rss_mib": round(resident_mib(pid), 1),
    }
    if events > answers:
        # The request's own cost is in it, too: an upper bound.
        figures["cpu_us_per_event"] = round(1e6 * spent / events, 2)
    return figures


if __name__ == "__main__":
    main()
