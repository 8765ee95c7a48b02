"""Any process may be killed during a change: the change ends as if nothing had happened."""

import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.stack import Demo, Person, until
from tests.e2e.traffic import Traffic

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("demo")]
NODE = "gpu-kr-02"
PROGRAMS = {"worker": "worker", "router": "router-a", "web": "web", "valkey": "valkey"}


@pytest.mark.parametrize("victim", ["worker", "router", "web", "valkey", "engine"])
def test_a_change_ends_the_same_when_a_process_is_killed(
    demo: Demo, victim: str, tmp_path: Path
) -> None:
    operator, approver = demo.person("operator"), demo.person("approver")
    role = "decode" if _roles(operator) == {"prefill"} else "prefill"
    plan = _started_change(operator, approver, role)

    with Traffic(demo, tmp_path / "load.json") as traffic:
        until(lambda: _is_under_way(operator, plan), seconds=60, what="the first wave")
        _kill(demo, victim)
        until(demo.answers, seconds=60, what="the console")
        until(lambda: _state(operator, plan) == "succeeded", seconds=180, what="the change's end")
        other = demo.router_state("router-b")["requests"]["total"]
        until(
            lambda: demo.router_state("router-b")["requests"]["total"] > other,
            seconds=30, what="the other router serving",
        )  # fmt: skip

    assert _roles(operator) == {role}
    assert traffic.result["ok"] > 0
    if victim not in {"engine", "router"}:
        # An answer that streams through the killed process breaks off; nothing else may fail.
        assert traffic.result["failed"] == 0
    until(lambda: _leases(demo) == 0, seconds=30, what="leases to end")


def _started_change(operator: Person, approver: Person, role: str) -> str:
    (node,) = [each for each in operator.get("/nodes")["items"] if each["hostname"] == NODE]
    made = operator.post(
        "/change-plans",
        {
            "pool": "granite-chat", "role": role, "nodes": [node["id"]], "soak_seconds": 1,
            "accelerators_per_wave": 1, "change_reason": f"Test: {NODE} becomes {role}.",
        },
    )  # fmt: skip
    assert made.status_code == 201, made.text
    plan = str(made.json()["id"])
    operator.act(plan, "propose")
    approver.act(plan, "approve")
    operator.act(plan, "apply")
    return plan


def _is_under_way(operator: Person, plan: str) -> bool:
    return any(wave["state"] == "running" for wave in _waves(operator, plan))


def _waves(operator: Person, plan: str) -> list[dict[str, Any]]:
    found = operator.get(f"/change-plans/{plan}/waves")
    return list(found["items"] if isinstance(found, dict) else found)


def _state(person: Person, plan: str) -> str | None:
    try:
        return str(person.get(f"/change-plans/{plan}")["status"]["state"])
    except (httpx.HTTPError, AssertionError):
        return None  # the console is the one that was killed


def _roles(operator: Person) -> set[str]:
    items = operator.get("/endpoints", pool="granite-chat", state="ready", page_size="1000")[
        "items"
    ]
    return {item["role"] for item in items if item["node"] == NODE}


def _kill(demo: Demo, victim: str) -> None:
    if victim == "engine":
        engines = [each for name, each in demo.engines().items() if "gpu-kr-07" in name]
        os.kill(engines[0]["pid"], signal.SIGKILL)
        return
    os.kill(demo.pid_of(PROGRAMS[victim]), signal.SIGKILL)


def _leases(demo: Demo) -> int | None:
    return sum(demo.router_state(name)["leases_open"] for name in demo.routers)
