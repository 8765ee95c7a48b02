"""The list "Needs you"."""

from controlplane.console import attention
from controlplane.console.selectors import pools
from controlplane.serving.models import Router
from controlplane.tenancy.models import User
from inventory.models import Cluster
from tests.controlplane.console.scene import Scene


def leads(user: User) -> list[tuple[str, str]]:
    rows = pools.pool_rows(pools.pools_for(user))
    found = attention.todos(user, pools=rows, routers=list(Router.objects.all()))
    return [(todo.lead, todo.name) for todo in found]


def test_the_approver_is_asked_and_alerts_are_told_once(scene: Scene) -> None:
    found = leads(scene.approver)

    assert ("Waits for your approval:", "CP-0046") in found
    assert ("Slower than its class:", "gpu-11/5") in found
    assert ("Not scraped:", "npu-41") in found
    assert ("Health:", "gpu-11/5") not in found
    assert ("Health unknown:", "npu-41") not in found


def test_the_author_is_not_asked_to_approve(scene: Scene) -> None:
    assert ("Waits for your approval:", "CP-0046") not in leads(scene.operator)


def test_a_missed_objective_comes_first(scene: Scene) -> None:
    scene.pool.slo_ttft_p95_seconds = 0.1
    scene.pool.save()

    assert leads(scene.operator)[0] == ("SLO missed:", "granite-chat")


def test_a_router_that_was_never_heard_is_silent_and_one_out_of_use_is_not(scene: Scene) -> None:
    router = Router.objects.get(name="router-a")
    router.heard_at = None
    silent = attention.is_silent(router)
    router.enabled = False

    assert (silent, attention.is_silent(router)) == (True, False)


def test_a_cluster_that_is_not_reached_is_told_until_it_answers(scene: Scene) -> None:
    told = ("Cluster is not reached:", "seoul-k8s")

    assert told in leads(scene.operator)
    Cluster.objects.update(error="", failures=0)
    assert told not in leads(scene.operator)


def test_people_of_a_tenant_are_not_told_about_the_fleet(scene: Scene) -> None:
    assert attention.todos(scene.tenant_user, pools=[], routers=[]) == []
