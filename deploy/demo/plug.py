"""Ends one process of the demo without warning, so that a person can see what happens then.

The console finds this module through the setting DEMO_PLUG; a real installation has none.
"""

import os
import signal
from collections.abc import Callable
from xmlrpc.client import Fault

import httpx

from deploy.demo import supervision

TIMEOUT_SECONDS = 3.0


class NothingToEndError(Exception):
    """No process of that kind runs at the moment."""


def choices() -> tuple[str, ...]:
    """Kinds of process that `pull` can end."""
    return tuple(_KINDS)


def pull(kind: str, *, engine_host_url: str, token: str) -> str:
    """End one process of the kind with SIGKILL and return its name.

    Raises KeyError for another kind, NothingToEndError if none runs.
    """
    return _KINDS[kind](engine_host_url, token)


def _engine(engine_host_url: str, token: str) -> str:
    answer = httpx.get(
        f"{engine_host_url}/engines",
        headers={"Authorization": f"Bearer {token}"},
        timeout=TIMEOUT_SECONDS,
    )
    answer.raise_for_status()
    running = [engine for engine in answer.json()["engines"] if engine.get("pid")]
    if not running:
        raise NothingToEndError("No engine runs.")
    chosen = max(running, key=lambda engine: engine.get("started_at") or 0)
    os.kill(chosen["pid"], signal.SIGKILL)
    return str(chosen["name"])


def _program(name: str) -> Callable[[str, str], str]:
    def end(_engine_host_url: str, _token: str) -> str:
        try:
            with supervision.connected(supervision.current_socket()) as remote:
                remote.signalProcess(name, "KILL")
        except Fault as fault:
            raise NothingToEndError(f"{name} does not run.") from fault
        return name

    return end


_KINDS: dict[str, Callable[[str, str], str]] = {
    "engine": _engine,
    "worker": _program("worker"),
    "router": _program("router-a"),
}
