"""Lists cost the same number of queries at 50 and at 200 rows."""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from controlplane.audit import services as audit
from controlplane.decisions.models import Decision
from controlplane.operations.models import Operation
from controlplane.planning.models import Scenario
from controlplane.serving.models import ChangePlan, Workload
from controlplane.tenancy.models import User
from inventory.models import Accelerator, Cluster, Node
from tests.controlplane.console.scene import Scene
from tests.controlplane.console.test_views_pages import address

MOST = {
    "/fleet/nodes": 13,
    "/fleet/clusters": 7,
    "/fleet/findings": 12,
    "/serving/changes": 12,
    "/serving/deployments": 10,
    "/serving/roles": 13,
    "/serving/changes/add": 13,
    "/operations": 8,
    "/audit": 8,
    "/routing/decisions": 12,
    "/planning": 9,
}


def _more_rows(scene: Scene, many: int, first: int) -> None:
    template = scene.nodes[4]
    nodes = Node.objects.bulk_create(
        Node(
            cluster=template.cluster,
            node_type=template.node_type,
            vendor=template.vendor,
            hostname=f"more-{number:04d}",
        )
        for number in range(first, first + many)
    )
    devices = Accelerator.objects.bulk_create(
        Accelerator(
            node=node, model=template.node_type.accelerator_model, vendor=node.vendor, slot=0
        )
        for node in nodes
    )
    Workload.objects.bulk_create(
        Workload(
            name=f"{device.node.hostname}-0", pool=scene.pool, node=device.node, accelerator=device,
            target="local", role="decode", desired_state="running",
        )
        for device in devices
    )  # fmt: skip
    ChangePlan.objects.bulk_create(
        ChangePlan(
            serial=1000 + number,
            pool=scene.pool,
            role="decode",
            author=scene.operator,
            reason="more",
            fingerprint="f",
            expires_at=scene.plan.expires_at,
        )
        for number in range(first, first + many)
    )
    Cluster.objects.bulk_create(
        Cluster(slug=f"more-{number}", name="More", site=template.cluster.site, kind="kubernetes")
        for number in range(first, first + many)
    )
    Decision.objects.bulk_create(
        Decision(
            router="router-b", router_started_at=1.0, number=number, decision_id=f"more-{number}",
            at=scene.decision.at, pool=scene.pool.slug, document_version=1, policy="consort",
        )
        for number in range(first, first + many)
    )  # fmt: skip
    Scenario.objects.bulk_create(
        Scenario(name=f"more {number}", problem={"demands": []}, created_by=scene.operator)
        for number in range(first, first + many)
    )
    Operation.objects.bulk_create(
        Operation(kind="more", task="serving.tasks.follow_plan", created_by=scene.operator)
        for _number in range(many)
    )
    for _number in range(many):
        audit.record(actor=scene.operator, action="more.rows", subject=scene.pool)


def _queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        response = client.get(path)
    assert response.status_code == 200
    return len(captured)


def test_lists_cost_the_same_queries_at_50_and_at_200_rows(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)
    _more_rows(scene, 50, first=0)
    few = {path: _queries(client, f"{path}?rows=200") for path in MOST}
    _more_rows(scene, 150, first=50)

    many = {path: _queries(client, f"{path}?rows=200") for path in MOST}

    assert many == few
    assert {path: used for path, used in many.items() if used > MOST[path]} == {}


def test_pages_stay_within_their_budget_of_queries(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    budgets = {
        "console:overview": 40, "node": 16, "cluster": 8, "pool": 24, "change": 16, "applying": 18,
        "console:decisions": 12, "decision": 10, "console:route-test": 8,
        "scenario": 8, "run": 9, "planning:savings": 4, "planning:scenario_add": 8,
        "console:cost": 20, "console:pools": 16, "console:routers": 12,
    }  # fmt: skip
    client = client_of(scene.operator)

    used = {page: _queries(client, address(scene, page)) for page in budgets}

    assert {page: count for page, count in used.items() if count > budgets[page]} == {}


def test_an_unchanged_plan_answers_304_with_few_queries(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    client = client_of(scene.operator)
    headers: dict[str, Any] = {"HX-Request": "true"}
    path = address(scene, "change")
    text = client.get(path, headers=headers).content.decode()
    tag = text.split('"If-None-Match": "')[1].split('"')[0]

    with CaptureQueriesContext(connection) as captured:
        response = client.get(path, headers=headers | {"If-None-Match": tag})

    assert response.status_code == 304
    assert response.content == b""
    assert len(captured) <= 5


def test_the_number_of_queries_does_not_depend_on_roles(
    scene: Scene, client_of: Callable[..., Client]
) -> None:
    path = "/fleet/nodes"
    as_operator = _queries(client_of(scene.operator), path)
    User.objects.filter(pk=scene.approver.pk).update(roles=["readonly"])

    as_reader = _queries(client_of(scene.approver), path)

    assert as_reader == as_operator
