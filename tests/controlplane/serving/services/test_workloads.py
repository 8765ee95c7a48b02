"""Desired engines, what a target says of them, and the endpoints that follow."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.common.permissions import NotPermittedError
from controlplane.serving import services
from controlplane.serving.models import Endpoint, Workload
from controlplane.serving.plans import items_of
from controlplane.serving.services import holding, refusals, workloads
from controlplane.serving.targets.base import SeenCondition, SeenEngine
from controlplane.telemetry.models import ScrapeTarget
from inventory.models import Accelerator
from tests.controlplane.serving.boundary import Boundary
from tests.controlplane.serving.factories import (
    accelerators_of,
    make_draft,
    make_fleet_node,
    make_pool,
)
from tests.controlplane.serving.rows import make_workload
from tests.factories import make_ben, make_olga

pytestmark = pytest.mark.django_db


class Host:
    """An engine host that says what it is told and notes what it was asked."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self.server = Boundary(self._respond)

    def says(self, workload: Workload, **overrides: Any) -> None:
        values = {
            "name": workload.name, "state": "running", "pid": 7, "port": 9000, "instance": "abc",
            "spec_hash": workload.desired["spec_hash"], "generation": 1, "starts": 1,
            "wanted_spec_hash": workload.desired["spec_hash"], "failure": "", "exit": None,
        }  # fmt: skip
        self.rows = [values | overrides]

    def _respond(self, method: str, path: str, _body: bytes, _: object) -> tuple[int, bytes]:
        if method == "GET":
            return 200, json.dumps({"engines": self.rows}).encode()
        self.asked.append(f"{method} {path.partition('?')[0]}")
        status, answer = self.refusal or (202, {})
        return status, json.dumps(answer).encode()


@pytest.fixture
def host(settings: Any) -> Iterator[Host]:
    host = Host()
    settings.ENGINE_HOST_URL = host.server.url
    yield host
    host.server.close()


def converge(workload: Workload) -> Workload:
    hold = holding.take(workload.pool)
    assert hold is not None
    workloads.converge(workload.pool, hold)
    holding.release(hold)
    workload.refresh_from_db()
    return workload


def condition(workload: Workload, kind: str) -> dict[str, Any]:
    return next(row for row in workload.conditions if row["type"] == kind)


def test_an_engine_that_is_missing_is_asked_for(host: Host) -> None:
    workload = converge(make_workload())

    assert host.asked == [f"PUT /engines/{workload.name}"]
    assert condition(workload, "Started")["status"] == "False"
    assert not Endpoint.objects.exists()


def test_an_engine_that_runs_as_wanted_becomes_an_endpoint_that_is_scraped(host: Host) -> None:
    workload = make_workload()
    host.says(workload)

    workload = converge(workload)
    converge(workload)

    endpoint = Endpoint.objects.get()
    assert (endpoint.state, endpoint.url, endpoint.pid) == ("starting", "http://127.0.0.1:9000", 7)
    assert endpoint.kv_contract["transport"] == "host-staged"
    assert workload.observed_generation == 1
    target = ScrapeTarget.objects.get()
    assert (target.instance, target.url) == ("abc", "http://127.0.0.1:9000/metrics")
    assert host.asked == []


def test_another_instance_ends_the_endpoint_before_it(host: Host) -> None:
    workload = make_workload()
    host.says(workload)
    converge(workload)
    host.says(workload, instance="def", pid=8)

    converge(workload)

    first, second = Endpoint.objects.order_by("created_at")
    assert (first.state, first.gone_reason, second.instance) == ("gone", "replaced", "def")
    assert list(ScrapeTarget.objects.filter(active=True).values_list("instance", flat=True)) == [
        "def"
    ]


def test_an_engine_that_ended_is_started_again_after_a_pause(host: Host) -> None:
    workload = make_workload()
    now = datetime.now(tz=UTC).timestamp()
    gone = {"state": "exited", "spec_hash": None, "instance": None, "pid": None, "starts": 3}
    ended = {"pid": 7, "code": 137, "wanted": False}

    host.says(workload, exit={**ended, "at": now}, **gone)
    workload = converge(workload)
    soon = list(host.asked)
    host.says(workload, exit={**ended, "at": now - 5}, **gone)
    converge(workload)

    assert (soon, host.asked) == ([], [f"PUT /engines/{workload.name}"])
    message = condition(workload, "Started")["message"]
    assert message == "The process ended with code 137; starts: 3."


def test_an_engine_that_is_not_wanted_is_ended(host: Host) -> None:
    workload = make_workload(desired_state="absent", role="")
    host.says(workload)

    converge(workload)

    assert host.asked == [f"DELETE /engines/{workload.name}"]


def test_the_counters_of_an_engine_are_read_before_it_is_ended(host: Host) -> None:
    workload = make_workload()
    host.says(workload)
    converge(workload)
    engine = Boundary(lambda *_asked: (host.asked.append("scrape"), (200, b""))[1])
    ScrapeTarget.objects.update(url=f"{engine.url}/metrics")
    workload.desired_state, workload.role = "absent", ""
    workload.save()

    converge(workload)
    engine.close()

    assert host.asked == ["scrape", f"DELETE /engines/{workload.name}"]


def test_a_target_that_is_away_is_a_condition_and_leaves_endpoints_alone(
    host: Host, settings: Any
) -> None:
    workload = make_workload()
    host.says(workload)
    converge(workload)
    settings.ENGINE_HOST_URL = "http://127.0.0.1:1"

    workload = converge(workload)

    assert condition(workload, "TargetReachable")["status"] == "Unknown"
    assert Endpoint.objects.get().state == "starting"


def test_a_refusal_of_the_target_is_a_condition_with_its_sentence(host: Host) -> None:
    host.refusal = (409, {"code": "fenced", "detail": "Fencing token 1 is older than 9."})

    workload = converge(make_workload())

    applied = condition(workload, "Applied")
    assert (applied["status"], "older than 9" in applied["message"]) == ("False", True)


def test_what_was_refused_is_asked_again_after_a_pause_that_doubles(host: Host) -> None:
    host.refusal = (400, {"code": "spec-refused", "detail": "No."})
    workload = converge(converge(make_workload()))
    assert (len(host.asked), workload.refusals) == (1, 1)

    Workload.objects.update(refused_at=datetime.now(tz=UTC) - timedelta(seconds=6))
    workload = converge(workload)
    Workload.objects.update(refused_at=datetime.now(tz=UTC) - timedelta(seconds=6))
    workload = converge(workload)
    assert (len(host.asked), workload.refusals) == (2, 2)

    host.refusal = None
    Workload.objects.update(refused_at=datetime.now(tz=UTC) - timedelta(seconds=11))
    workload = converge(workload)
    assert (len(host.asked), workload.refusals, workload.refused_at) == (3, 0, None)


def test_another_wish_is_asked_for_at_once_after_a_refusal(host: Host) -> None:
    host.refusal = (400, {"code": "spec-refused", "detail": "No."})
    workload = converge(make_workload())
    workload.generation += 1
    workload.save()

    workload = converge(workload)

    assert len(host.asked) == 2
    assert refusals.is_refused(workload)


def test_a_newer_holder_is_no_refusal_of_what_is_wanted(host: Host) -> None:
    host.refusal = (409, {"code": "fenced", "detail": "Older."})

    workload = converge(make_workload())

    assert not refusals.is_refused(workload)


def test_what_a_target_says_beside_the_state_comes_and_goes() -> None:
    workload = make_workload()
    rows = (
        SeenCondition(type="Scheduled", status="False", reason="Unschedulable", message="no room"),
        SeenCondition(type="Started", status="False", reason="Unschedulable", message="no room"),
    )
    now = datetime.now(tz=UTC)

    with_them = SeenEngine(name=workload.name, state="starting", conditions=rows)
    workload.conditions = workloads._conditions(workload, with_them, now)
    told = {row["type"]: row["reason"] for row in workload.conditions}
    without = SeenEngine(name=workload.name, state="starting")
    later = {row["type"]: row["reason"] for row in workloads._conditions(workload, without, now)}

    assert (told["Scheduled"], told["Started"]) == ("Unschedulable", "Unschedulable")
    assert "Scheduled" not in later
    assert later["Started"] == "starting"


@pytest.mark.parametrize(
    ("starts", "age", "waits"),
    [(1, 0.5, True), (1, 1.5, False), (3, 3.0, True), (3, 5.0, False), (30, 59.0, True)],
)
def test_the_pause_before_another_start_doubles_up_to_a_minute(
    starts: int, age: float, waits: bool
) -> None:
    now = datetime.now(tz=UTC)
    ended = (now - timedelta(seconds=age)).timestamp()
    seen = SeenEngine(name="x", state="exited", starts=starts, exited_at=ended)

    assert workloads._backs_off(seen, now) is waits


def test_the_output_of_an_engine_is_for_people_of_the_fleet(host: Host) -> None:
    workload = make_workload()

    text = services.workload_logs(workload_id=workload.pk, actor=make_olga())

    assert "engines" in text
    with pytest.raises(NotPermittedError):
        services.workload_logs(workload_id=workload.pk, actor=make_ben())


def test_a_card_in_a_slot_takes_over_the_row_of_the_one_before() -> None:
    pool, node = make_pool(), make_fleet_node(accelerators=1)
    (old,) = accelerators_of(node)
    row = make_workload(old, pool=pool, desired_state="absent", role="")
    old.state, old.retired_at = "retired", datetime.now(tz=UTC)
    old.save()
    fresh = Accelerator.objects.create(
        node=node, model=old.model, vendor=old.vendor, slot=old.slot, serial="fresh"
    )
    plan = make_draft(pool, accelerator_ids=[fresh.pk])

    workloads.want_engines(pool=pool, items=items_of(plan.diff))
    workloads.want_engines(pool=pool, items=items_of(plan.diff))

    row.refresh_from_db()
    assert (row.accelerator, row.role, row.generation) == (fresh, "both", 2)
