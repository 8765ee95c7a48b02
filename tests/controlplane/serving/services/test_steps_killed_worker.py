"""A worker that dies anywhere in a wave: the next run ends in the same state.

The loop runs in a process of its own against an engine host behind a proxy and a router. When the
wave is at the step, and the process makes the call, it is killed with SIGKILL, before the call is
passed on or after it was carried out but not answered.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection, connections

from controlplane.operations.models import Lease
from controlplane.serving import services
from controlplane.serving.enginehost import process
from controlplane.serving.models import (
    ChangePlan,
    Endpoint,
    Pool,
    RoleAssignment,
    Wave,
    Workload,
)
from tests.controlplane.serving.boundary import Boundary, ScriptedRouter, host_proxy
from tests.controlplane.serving.factories import make_applying, make_fleet_node, make_pool
from tests.controlplane.serving.processes import PROJECT, TOKEN, EngineHost, secret_file

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def database_url() -> str:
    settings = connection.settings_dict
    password = f":{quote(settings['PASSWORD'])}" if settings["PASSWORD"] else ""
    host, port = settings["HOST"], f"&port={settings['PORT']}" if settings["PORT"] else ""
    user = f"{quote(settings['USER'])}{password}"
    return f"postgresql://{user}@/{settings['NAME']}?host={quote(host)}{port}"


class Worker:
    """The loop of a pool in a process of its own."""

    def __init__(self, pool: Pool, host_url: str) -> None:
        environment = os.environ | {
            "DATABASE_URL": database_url(), "BROKER_URL": "redis://127.0.0.1:1",
            "ENGINE_HOST_URL": host_url, "ENGINE_HOST_TOKEN": TOKEN, "DEBUG": "true",
            "SERVING_LEASE_SECONDS": "2", "LOG_LEVEL": "ERROR",
        }  # fmt: skip
        self.child = subprocess.Popen(
            [sys.executable, "-m", "tests.controlplane.serving.loop_process", str(pool.pk)],
            cwd=PROJECT, env=environment,
        )  # fmt: skip

    def kill(self) -> None:
        os.kill(self.child.pid, signal.SIGKILL)


@pytest.fixture
def router(tmp_path: Any) -> Iterator[ScriptedRouter]:
    router = ScriptedRouter()
    services.register_router(
        name="r1", admin_url=router.url, public_url=router.url, actor=None,
        token_reference=f"file:{secret_file(tmp_path / 'r1')}",
    )  # fmt: skip
    yield router
    router.close()


@pytest.fixture
def proxy(engine_host: EngineHost) -> Iterator[Boundary]:
    proxy = host_proxy(engine_host.url)
    yield proxy
    proxy.close()


def finish(plan: ChangePlan, *, seconds: float = 60) -> ChangePlan:
    deadline = time.monotonic() + seconds
    while plan.state == ChangePlan.State.APPLYING and time.monotonic() < deadline:
        if not services.reconcile_pool(pool_id=plan.pool_id, patience_seconds=1.0):
            time.sleep(0.1)  # the dead worker's lease has not run out
        plan.refresh_from_db()
    return plan


@pytest.mark.parametrize(
    ("step", "call", "when"),
    [
        (Wave.Step.DRAIN, "GET /engines", "before"),
        (Wave.Step.DRAIN, "PUT /admin/pool-document", "after"),
        (Wave.Step.SWITCH, "GET /engines", "before"),
        (Wave.Step.START, "PUT /engines/", "before"),
        (Wave.Step.START, "PUT /engines/", "after"),
        (Wave.Step.START, "PUT /admin/pool-document", "after"),
        (Wave.Step.READY, "GET /engines", "before"),
        (Wave.Step.ADD, "GET /admin/state", "before"),
        (Wave.Step.OBSERVE, "GET /metrics", "after"),
    ],
)
def test_a_change_ends_in_the_same_state_wherever_the_worker_is_killed(
    engine_host: EngineHost,
    proxy: Boundary,
    router: ScriptedRouter,
    step: str,
    call: str,
    when: str,
) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    finish(make_applying(pool, node, role="both"))
    before = Endpoint.objects.get(state="ready")
    plan = make_applying(pool, node, role="decode")
    killed: list[str] = []

    def watch(method: str, path: str, seen_when: str) -> bool:
        try:
            at = Wave.objects.get(plan=plan)
        finally:
            connections.close_all()
        if killed:
            return True
        is_call = f"{method} {path}".startswith(call) and seen_when == when
        if is_call and (at.step, at.state) == (step, Wave.State.RUNNING):
            killed.append(path)
            worker.kill()
        return bool(killed)

    proxy.watch = router.server.watch = watch
    worker = Worker(pool, proxy.url)
    code = worker.child.wait(60)
    proxy.watch = router.server.watch = lambda *_: False
    assert (code, len(killed)) == (-signal.SIGKILL, 1)

    finish(plan)

    assert (plan.state, plan.outcome) == ("succeeded", "Waves done: 1.")
    assert_role_changed_once(pool, plan, before, router)
    names = [engine["name"] for engine in engine_host.client.get("/engines").json()["engines"]]
    assert names == [Workload.objects.get().name]


def assert_role_changed_once(
    pool: Pool, plan: ChangePlan, before: Endpoint, router: ScriptedRouter
) -> None:
    old, new = RoleAssignment.objects.order_by("valid_from")
    assert (old.role, new.role, new.valid_to) == ("both", "decode", None)
    assert old.valid_to == new.valid_from
    workload, endpoint = Workload.objects.get(), Endpoint.objects.get(state="ready")
    assert workload.generation == workload.observed_generation == 2
    assert (endpoint.role, endpoint.workload) == ("decode", workload)
    assert before.pid is not None
    assert process.start_ticks(before.pid) is None
    latest = pool.documents.order_by("-version").first()
    assert latest is not None
    document = router.documents[pool.slug]
    assert (document["version"], document["hash"]) == (latest.version, latest.sha256)
    [entry] = document["endpoints"]
    assert (entry["role"], entry["instance"]) == ("decode", endpoint.instance)
    assert entry.get("state", "ready") == "ready"
    assert plan.operation is not None
    plan.operation.refresh_from_db()
    assert plan.operation.state == "succeeded"
    lease = Lease.objects.get(resource=f"serving.pool:{pool.pk}")
    assert services.reconcile_pool(pool_id=pool.pk), f"{lease} is left over"
