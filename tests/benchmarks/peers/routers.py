"""CPU time and first-byte delay of routers on loopback, over the same eight fake engines.

Per router and case: CPU time per request of the router's processes (user and system), the delay to
the first byte, and the share of the machine that others took meanwhile: above a fifth, repeat.
"""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks import processes
from tests.benchmarks.peers import bodies

FIRST_ENGINE_PORT, ENGINES = 9100, 8
EVENTS, INTERVAL_MICROSECONDS = 200, 2000


@dataclass(frozen=True, slots=True)
class Case:
    """A closed loop of some connections for some seconds."""

    bodies: str
    connections: int
    seconds: int


CASES = {
    "1kB": Case("chat-1k.txt", 32, 4),
    "30kB": Case("chat-30k.txt", 32, 4),
    "stream": Case("chat-1k-stream.txt", 64, 5),
}


def engines() -> list[str]:
    """Addresses of the fake engines."""
    return [f"http://127.0.0.1:{FIRST_ENGINE_PORT + number}" for number in range(ENGINES)]


def commands(work: Path, installed: dict[str, bool]) -> dict[str, str]:
    """How each router is started; `{port}` and `{metrics}` are filled in later."""
    workers = " ".join(engines())
    found = {
        "consort": f"{sys.executable} -m tests.benchmarks.peers.ours --port {{port}}"
        f" --folder {work}/ours --workers {workers}"
    }
    if installed["sglang"]:
        for policy in ("cache_aware", "round_robin"):
            found[f"sglang-router {policy}"] = (
                f"{work}/venv-sglang/bin/sglang-router launch --host 127.0.0.1 --port {{port}}"
                f" --worker-urls {workers} --log-level warn --prometheus-host 127.0.0.1"
                " --prometheus-port {metrics} --worker-startup-check-interval 1"
                f" --policy {policy}"
            )
    if installed["vllm"]:
        for policy in ("round_robin", "consistent_hash"):
            found[f"vllm-router {policy}"] = (
                f"{work}/venv-vllm/bin/vllm-router --host 127.0.0.1 --port {{port}}"
                f" --worker-urls {workers} --log-level warning --prometheus-port {{metrics}}"
                f" --worker-startup-check-interval 1 --policy {policy}"
            )
    return found


def compare(work: Path, installed: dict[str, bool], *, rounds: int) -> list[dict[str, Any]]:
    """All routers and cases, `rounds` times in turn; every row of every round is returned."""
    bodies.write(work / "chat-1k.txt", size=1_000, stream=False)
    bodies.write(work / "chat-30k.txt", size=30_000, stream=False)
    bodies.write(work / "chat-1k-stream.txt", size=1_000, stream=True)
    fakes = f"{work}/fakebackend {FIRST_ENGINE_PORT} {ENGINES} {EVENTS} {INTERVAL_MICROSECONDS}"
    rows: list[dict[str, Any]] = []
    with processes.running(fakes, work / "engines.log") as backend:
        time.sleep(0.5)
        for number in range(rounds):
            rows += _direct(work, backend.pid)
            for position, (name, command) in enumerate(commands(work, installed).items()):
                port = 30_100 + 10 * number + position
                line = command.replace("{port}", str(port)).replace("{metrics}", str(port + 500))
                log = work / f"{name.replace(' ', '-')}.log"
                with processes.running(line, log) as router:
                    rows += _measured(work, name, port, router.pid, backend.pid)
    return rows


def _direct(work: Path, backend: int) -> list[dict[str, Any]]:
    return [
        _run(work, "direct", FIRST_ENGINE_PORT, None, backend, case=case) for case in ("stream",)
    ]


def _measured(work: Path, name: str, port: int, pid: int, backend: int) -> list[dict[str, Any]]:
    first = (work / "chat-1k.txt").read_text().split("\n", 1)[0].split("\t", 1)[1].encode()
    if not processes.wait_until_serving(port, first):
        print(f"{name} did not get ready; see its log.", file=sys.stderr)
        return []
    _load(work, port, CASES["1kB"], seconds=1)
    return [_run(work, name, port, pid, backend, case=case) for case in CASES]


def _run(
    work: Path, name: str, port: int, pid: int | None, backend: int, *, case: str
) -> dict[str, Any]:
    spent, machine = (0.0 if pid is None else processes.cpu_seconds(pid)), _others(pid, backend)
    began = time.monotonic()
    result = _load(work, port, CASES[case])
    seconds = time.monotonic() - began
    spent = (0.0 if pid is None else processes.cpu_seconds(pid)) - spent
    others = _others(pid, backend) - machine - result["gen_cpu_s"]
    row = {
        "router": name,
        "case": case,
        "requests": result["ok"],
        "errors": result["errors"],
        "cpu_us_per_request": round(1e6 * spent / max(1, result["ok"]), 1),
        "requests_per_second": round(result["rps"], 1),
        "first_byte_us_p50": result["ttfb_p50_us"],
        "resident_mb": None if pid is None else round(processes.resident_bytes(pid) / 1e6, 1),
        "share_of_machine_taken_by_others": round(max(0.0, others) / seconds / 2, 2),
    }
    print(json.dumps(row), flush=True)
    return row


def _others(pid: int | None, backend: int) -> float:
    """CPU time of everything but the router, the engines and (later) the load generator."""
    own = 0.0 if pid is None else processes.cpu_seconds(pid)
    return processes.machine_cpu_seconds() - own - processes.cpu_seconds(backend)


def _load(work: Path, port: int, case: Case, *, seconds: int | None = None) -> dict[str, Any]:
    line = [
        str(work / "loadgen"), "127.0.0.1", str(port), "/v1/chat/completions",
        str(work / case.bodies), str(case.connections), str(seconds or case.seconds),
    ]  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=120)
    result: dict[str, Any] = json.loads(done.stdout)
    return result
