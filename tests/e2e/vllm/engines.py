"""Real vLLM engines on loopback, each a process group that this test run starts and ends."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

ROOT = Path(__file__).resolve().parents[3]
HOME = ROOT / "var" / "vllm"
MODELS = HOME / "models"
MODEL, ADAPTERS = "tiny", ("red", "blue")
BLOCK_TOKENS = 32
"""Smallest block of the CPU attention that was seen to work."""
START_SECONDS, STOP_SECONDS = 900.0, 30.0
"""An idle machine starts one in half a minute; another load on its cores makes that many."""
_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_HOST_IP": "127.0.0.1",
    "VLLM_NO_USAGE_STATS": "1",
}


class VllmEngine:
    """One engine; its ports stay the same through its lives."""

    def __init__(
        self,
        name: str,
        *,
        core: int,
        arguments: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.port, self._events_port, self._replay_port = free_ports(3)
        self.log = HOME / "logs" / f"{name}.log"
        self._core = core % (os.cpu_count() or 1)
        self._arguments = arguments
        self._environment = os.environ | _ENVIRONMENT | (environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin a life; it answers after `wait`."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command(),
                cwd=HOME,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _command(self) -> list[str]:
        events = {
            "enable_kv_cache_events": True,
            "publisher": "zmq",
            "endpoint": f"tcp://*:{self._events_port}",
            "replay_endpoint": f"tcp://127.0.0.1:{self._replay_port}",
            "topic": f"kv@{self.name}@{MODEL}",
        }
        return [
            *("nice", "-n", "10", "taskset", "-c", str(self._core)),
            *(str(HOME / "venv/bin/python"), str(HOME / "venv/bin/vllm"), "serve"),
            *(str(MODELS / MODEL), "--served-model-name", MODEL),
            *("--host", "127.0.0.1", "--port", str(self.port), "--dtype", "bfloat16"),
            *("--max-model-len", "4096", "--max-num-seqs", "8", "--enforce-eager"),
            *("--enable-prefix-caching", "--enable-prompt-tokens-details"),
            *("--block-size", str(BLOCK_TOKENS), "--kv-events-config", json.dumps(events)),
            *self._arguments,
        ]

    def wait(self) -> None:
        """Until it answers. Raises AssertionError with the end of its log when it does not."""
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            died = self._process is None or self._process.poll() is not None
            if died or time.monotonic() > deadline:
                end = self.log.read_text(errors="replace")[-4000:]
                raise AssertionError(f"vLLM {self.name} did not start; its log ends:\n{end}")
            time.sleep(0.25)

    def answers(self) -> bool:
        """Whether its health page does."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/health", timeout=5).is_success
        except httpx.TransportError:
            return False

    def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """End its life: everything of its process group is gone afterwards."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, first)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=STOP_SECONDS)


@contextmanager
def running(*engines: VllmEngine) -> Iterator[None]:
    """Start engines side by side, and end them whatever happens."""
    try:
        for engine in engines:
            engine.start()
        for engine in engines:
            engine.wait()
        yield
    finally:
        for engine in engines:
            engine.stop()


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody has at present."""
    with_ports = [socket.socket() for _ in range(count)]
    try:
        for one in with_ports:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in with_ports]
    finally:
        for one in with_ports:
            one.close()
