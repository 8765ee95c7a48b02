"""Documents on their way to routers: one first, last good stays, the absent get it on return."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.serving import services
from controlplane.serving.models import Pool, PoolDocument, Router, RouterPush
from controlplane.serving.services.pushing import push_latest
from controlplane.serving.services.routers import version_at
from tests.controlplane.serving.boundary import ScriptedRouter
from tests.controlplane.serving.factories import make_pool
from tests.controlplane.serving.services.test_routers import register
from tests.factories import make_inference_key, make_olga

pytestmark = pytest.mark.django_db

REFUSAL = (
    422,
    {"code": "document-refused", "pointer": "/endpoints/0/role", "detail": "No.", "allowed": []},
)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[ScriptedRouter, ScriptedRouter]]:
    routers = (ScriptedRouter(), ScriptedRouter())
    for number, router in enumerate(routers, start=1):
        register(f"r{number}", router.url, tmp_path)
    yield routers
    for router in routers:
        router.close()


def publish(pool: Pool) -> PoolDocument:
    document = services.publish_if_changed(pool_id=pool.pk)
    assert document is not None
    return document


def states(document: PoolDocument) -> dict[str, str]:
    return dict(document.pushes.values_list("router__name", "state"))


def test_a_document_goes_to_one_router_and_then_to_the_rest(
    two: tuple[ScriptedRouter, ScriptedRouter],
) -> None:
    pool = make_pool()
    document = publish(pool)

    push_latest(pool)

    assert states(document) == {"r1": "acknowledged", "r2": "acknowledged"}
    assert document.pushes.get(canary=True).router.name == "r1"
    assert [version_at(row, pool) for row in Router.objects.all()] == [1, 1]


def test_equal_content_makes_no_other_version_and_a_policy_change_does() -> None:
    pool = make_pool()
    publish(pool)

    again = services.publish_if_changed(pool_id=pool.pk)
    services.change_policy(pool_id=pool.pk, policy="random", reason="race", actor=make_olga())

    assert again is None
    assert publish(pool).version == 2


def test_a_key_that_is_issued_is_in_the_next_version_as_a_hash() -> None:
    pool = make_pool()
    publish(pool)
    key, secret = make_inference_key()

    document = publish(pool)

    assert key.sha256 in document.content
    assert secret not in document.content


def test_a_refusal_by_the_first_leaves_every_router_on_the_version_before(
    two: tuple[ScriptedRouter, ScriptedRouter],
) -> None:
    pool = make_pool()
    publish(pool)
    push_latest(pool)
    two[0].refusal = REFUSAL
    services.change_policy(pool_id=pool.pk, policy="random", actor=make_olga())
    document = publish(pool)

    push_latest(pool)
    push_latest(pool)

    push = document.pushes.get(router__name="r1")
    assert (push.state, push.pointer, push.detail) == ("refused", "/endpoints/0/role", "No.")
    assert [router.received for router in two] == [[1, 2], [1]]
    assert {version_at(row, pool) for row in Router.objects.all()} == {1}


def test_a_router_that_never_answers_is_passed_over_and_gets_it_on_its_return(
    two: tuple[ScriptedRouter, ScriptedRouter],
) -> None:
    pool = make_pool()
    Router.objects.filter(name="r1").update(admin_url="http://127.0.0.1:1")
    document = publish(pool)

    push_latest(pool)

    assert states(document) == {"r1": "failed", "r2": "acknowledged"}
    assert "did not answer" in document.pushes.get(router__name="r1").detail

    Router.objects.filter(name="r1").update(admin_url=two[0].url)
    push_latest(pool)
    assert states(document) == {"r1": "acknowledged", "r2": "acknowledged"}


def test_a_router_that_lost_its_state_gets_the_document_again(
    two: tuple[ScriptedRouter, ScriptedRouter],
) -> None:
    pool = make_pool()
    publish(pool)
    push_latest(pool)
    two[0].documents.clear()

    services.poll_routers()
    push_latest(pool)

    assert two[0].received == [1, 1]


def test_an_answer_that_was_lost_is_made_up_for_by_what_the_router_says(
    two: tuple[ScriptedRouter, ScriptedRouter],
) -> None:
    pool = make_pool()
    document = publish(pool)
    push_latest(pool)
    RouterPush.objects.update(state="pending")
    Router.objects.update(documents={})

    heard = services.poll_routers()

    assert heard == 2
    assert states(document) == {"r1": "acknowledged", "r2": "acknowledged"}


def test_a_router_ahead_of_the_rows_is_overtaken(
    two: tuple[ScriptedRouter, ScriptedRouter],
) -> None:
    pool = make_pool()
    publish(pool)
    two[0].refusal = (409, {"code": "version-not-newer", "version": 41, "detail": "older"})

    push_latest(pool)
    two[0].refusal = None
    push_latest(pool)

    assert list(pool.documents.values_list("version", flat=True)) == [42, 1]
    assert {version_at(row, pool) for row in Router.objects.all()} == {42}


def test_a_router_out_of_use_is_left_alone(two: tuple[ScriptedRouter, ScriptedRouter]) -> None:
    pool = make_pool()
    router = Router.objects.get(name="r1")
    services.set_router_enabled(router_id=router.pk, enabled=False, actor=make_olga())
    publish(pool)

    push_latest(pool)

    assert [one.received for one in two] == [[], [1]]
