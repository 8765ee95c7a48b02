"""A worker that dies anywhere in a wave: the next run ends in the same state.

The loop runs in a process of its own against an engine host behind a proxy and a router. When the
wave is at the step, and the process makes the call, it is killed with SIGKILL, before the call is
passed on or after it was carried out but not answered.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

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
from inventory.files import measure_folder
from tests.controlplane.serving.boundary import Boundary, ScriptedRouter, proxy_of
from tests.controlplane.serving.factories import (
    make_applying,
    make_artefact,
    make_fleet_node,
    make_pool,
)
from tests.controlplane.serving.killing import KillAt, Worker, finish
from tests.controlplane.serving.processes import TOKEN, EngineHost
from tests.factories import make_olga

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def proxy(engine_host: EngineHost) -> Iterator[Boundary]:
    proxy = proxy_of(engine_host.url)
    yield proxy
    proxy.close()


@pytest.mark.parametrize(
    ("step", "call", "when"),
    [
        (Wave.Step.PREFETCH, "GET /engines", "before"),
        (Wave.Step.PREFETCH, "PUT /folders", "before"),
        (Wave.Step.PREFETCH, "PUT /folders", "after"),
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
    scripted_router: ScriptedRouter,
    tmp_path: Path,
    step: str,
    call: str,
    when: str,
) -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    finish(make_applying(pool, node, role="both"))
    before = Endpoint.objects.get(state="ready")
    if step == Wave.Step.PREFETCH:
        give_files(pool, tmp_path / "files")
    plan = make_applying(pool, node, role="decode")
    killing = KillAt(plan, step, call, when, proxy, scripted_router.server)

    code = killing.run(Worker(pool, {"ENGINE_HOST_URL": proxy.url, "ENGINE_HOST_TOKEN": TOKEN}))
    assert (code, len(killing.calls)) == (-signal.SIGKILL, 1)

    finish(plan)

    assert (plan.state, plan.outcome) == ("succeeded", "Waves done: 1.")
    assert_role_changed_once(pool, plan, before, scripted_router)
    names = [engine["name"] for engine in engine_host.client.get("/engines").json()["engines"]]
    assert names == [Workload.objects.get().name]


def give_files(pool: Pool, folder: Path) -> None:
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    sha256 = measure_folder(folder, most_seconds=9).sha256
    files = make_artefact(uri=str(folder), sha256=sha256)
    services.set_pool_artefact(
        pool_id=pool.pk, artefact_id=files.pk, reason="test", actor=make_olga()
    )


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
