"""Simulated engines and routers as real processes on loopback, for benchmarks and soak runs.

    with Fleet(folder, engines=THREE_VENDORS) as fleet:
        router = fleet.start_router("r1")
        fleet.push(router, policy="consort")

Everything is started on free ports and ended with the `with` block.
"""

import hashlib
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from routing.simulator.profiles import Profile, load_profile
from tests.benchmarks import processes

MODEL = "granite-4.1-8b"
KEY, TOKEN = "sk-fleet", "token-of-the-fleet"
START_SECONDS = 60.0
THREE_VENDORS = {"nvidia-h100-nvl": 4, "amd-mi325x": 8, "intel-gaudi3": 8}
"""The published pool of three vendors: one accelerator an engine."""
_CONTRACT = {
    "engine": "vllm", "engine_version": "0.32.0", "connector": "NixlConnector",
    "connector_version": "1", "transport": "host-staged", "model_revision": "1",
    "kv_dtype": "bfloat16", "block_size_tokens": 16, "layout": "HND", "kv_heads": 8,
    "head_size": 128, "tensor_parallel": 1, "pipeline_parallel": 1, "staging_device": "cpu",
    "fabric": "roce",
}  # fmt: skip


@dataclass(slots=True)
class Engine:
    """One simulated engine; `life` counts its starts."""

    name: str
    accelerator: str
    role: str
    process: subprocess.Popen[bytes]
    port: int
    life: int = 1

    @property
    def url(self) -> str:
        """Address that routers use."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(slots=True)
class Router:
    """One router (its supervisor, when it has several processes)."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    admin_port: int
    version: int = 0

    @property
    def url(self) -> str:
        """Address that clients use."""
        return f"http://127.0.0.1:{self.port}"


@dataclass(slots=True, kw_only=True)
class Fleet:
    """Processes of one run."""

    folder: Path
    engines: Mapping[str, int] = field(default_factory=lambda: THREE_VENDORS)
    roles: Mapping[str, str] = field(default_factory=dict)
    """Role by accelerator; `both` where nothing is said."""
    speed: float = 1.0
    """Model seconds per second of every engine."""
    engine_options: Sequence[str] = ()
    running: list[Engine] = field(default_factory=list)
    routers: list[Router] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)
    """Members of each document that differ from the defaults."""

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "token").write_text(TOKEN)
        try:
            for accelerator, count in self.engines.items():
                for number in range(count):
                    self.running.append(self._start_engine(f"{accelerator}-{number}", accelerator))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything that was started here."""
        started = [router.process for router in self.routers]
        started += [engine.process for engine in self.running]
        for process in started:
            if process.poll() is None:
                process.terminate()
        for process in started:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start_engine(self, name: str, accelerator: str, *, port: int = 0) -> Engine:
        role = self.roles.get(accelerator, "both")
        process, ready = _start(
            self.folder / f"{name}.log",
            "routing.testbed.engine", "--port", str(port), "--model", MODEL,
            "--accelerator", accelerator, "--role", role, "--speed", str(self.speed),
            "--engine-id", name, *self.engine_options,
        )  # fmt: skip
        return Engine(name, accelerator, role, process, int(ready["port"]))

    def kill_engine(self, engine: Engine) -> None:
        """As a crash: no chance to end anything."""
        engine.process.send_signal(signal.SIGKILL)
        engine.process.wait()

    def restart_engine(self, engine: Engine) -> None:
        """Start a killed engine again, at its old port."""
        again = self._start_engine(engine.name, engine.accelerator, port=engine.port)
        engine.process = again.process
        engine.life += 1

    def start_router(self, name: str, *options: str) -> Router:
        """A router without a document."""
        process, ready = _start(
            self.folder / f"{name}.log",
            "routing.servers", "--name", name, "--port", "0", "--admin-port", "0",
            "--state-dir", str(self.folder / name), "--admin-token-file",
            str(self.folder / "token"), "--log-level", "warning", *options,
        )  # fmt: skip
        router = Router(name, process, int(ready["port"]), int(ready["admin_port"]))
        self.routers.append(router)
        return router

    def push(self, router: Router, **changes: Any) -> None:
        """Send the fleet's document as its next version; `changes` replace members of it."""
        router.version += 1
        document = self.document(router.version, **(self.changes | changes))
        admin(router, "PUT", "/admin/pool-document", document)

    def document(self, version: int, **changes: Any) -> dict[str, Any]:
        """The pool document of the engines that run at present."""
        # As slow as the engines run: links, too, or pairs would look cheaper than they are.
        profiles = {name: load_profile(name, MODEL).slower(1 / self.speed) for name in self.engines}
        is_split = any(role != "both" for role in self.roles.values())
        return {
            "pool": "fleet", "version": version, "author": "bench", "currency": "USD",
            "created_at": "2026-01-01T00:00:00Z",
            "role_mode": "disaggregated" if is_split else "unified",
            "models": [{"name": MODEL, "max_model_len": 32_768}],
            "endpoints": [
                _endpoint(engine, profiles[engine.accelerator]) for engine in self.running
            ],
            "speed_classes": {name: _prior(one) for name, one in profiles.items()},
            "keys": [
                {
                    "id": "k", "sha256": hashlib.sha256(KEY.encode()).hexdigest(),
                    "tenant": "bench", "project": "bench",
                }
            ],
            **changes,
        }  # fmt: skip


def _prior(profile: Profile) -> dict[str, Any]:
    """What data sheets let one expect; learning has to find the rest."""
    return {
        "prefill_tokens_per_second": 1 / profile.prefill_seconds_per_token,
        "step_seconds": profile.step_seconds,
        "step_seconds_per_sequence": profile.step_seconds_per_sequence,
        "step_seconds_per_context_token": profile.step_seconds_per_context_token,
        "kv_bytes_per_token": profile.kv_bytes_per_token,
    }


def _endpoint(engine: Engine, profile: Profile) -> dict[str, Any]:
    # Of the wire: who pairs engines counts the way through host memory itself.
    # Without a backend on both ends nobody knows whether a pair works, and none is made.
    contract = {
        "transfer_bytes_per_second": profile.wire_bytes_per_second,
        "attention_backend": engine.accelerator.partition("-")[0],
    }
    return {
        "id": engine.name, "url": engine.url, "instance": f"{engine.name}-{engine.life}",
        "engine": "vllm", "role": engine.role, "vendor": engine.accelerator.partition("-")[0],
        "speed_class": engine.accelerator, "node": engine.name, "site": "bench",
        "jurisdiction": "KR", "kv_capacity_tokens": profile.kv_tokens, "block_size_tokens": 16,
        "max_model_len": 32_768, "kv_contract": _CONTRACT | contract,
    }  # fmt: skip


def admin(router: Router, method: str, path: str, body: Any = None) -> Any:
    """One call of a router's admin port."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{router.admin_port}{path}",
        None if body is None else json.dumps(body).encode(),
        {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - loopback only
        text = answer.read()
    return json.loads(text) if text else None


def _start(log: Path, module: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Any]:
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, stderr=errors
        )
    if process.stdout is None:
        raise RuntimeError("The process has no output.")
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{module} did not start; see {log}.")
    return process, json.loads(line)


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """CPU time of a process and its children so far."""
    return processes.cpu_seconds(process.pid)
