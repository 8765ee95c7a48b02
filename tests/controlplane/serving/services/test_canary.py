"""New settings are watched on one router; what fares worse never reaches the others."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from django.utils import timezone

from controlplane.audit.models import AuditEntry
from controlplane.serving import services
from controlplane.serving.models import Pool, PoolDocument, Router
from controlplane.serving.services.publishing import document_of
from controlplane.serving.services.pushing import push_latest
from controlplane.serving.services.routers import version_at
from tests.controlplane.serving.boundary import ScriptedRouter
from tests.controlplane.serving.factories import make_pool
from tests.controlplane.serving.processes import secret_file
from tests.factories import make_inference_key, make_olga

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(tmp_path: Path) -> Iterator[list[ScriptedRouter]]:
    scripted = [ScriptedRouter() for _ in range(3)]
    for number, router in enumerate(scripted, start=1):
        services.register_router(
            name=f"r{number}", admin_url=router.url, public_url=router.url, actor=None,
            token_reference=f"file:{secret_file(tmp_path / f'r{number}')}",
        )  # fmt: skip
    yield scripted
    for router in scripted:
        router.close()


@pytest.fixture
def pool(three: list[ScriptedRouter]) -> Pool:
    """A pool whose first document every router has."""
    made = make_pool(canary_seconds=10.0)
    services.publish_if_changed(pool_id=made.pk)
    push_latest(made)
    services.poll_routers()
    for router in three:
        router.answers = {200: 1000}
    assert versions(made) == [1, 1, 1]
    return made


def versions(pool: Pool) -> list[int]:
    return [version_at(row, pool) for row in Router.objects.order_by("name")]


def new_policy(pool: Pool, policy: str = "random") -> PoolDocument:
    services.change_policy(pool_id=pool.pk, policy=policy, actor=make_olga())
    document = services.publish_if_changed(pool_id=pool.pk)
    assert document is not None
    return document


def later(seconds: float) -> time_machine.travel:
    return time_machine.travel(timezone.now() + timedelta(seconds=seconds), tick=False)


def test_settings_stay_on_one_router_until_they_were_watched(pool: Pool) -> None:
    new_policy(pool)

    watches = [push_latest(pool), push_latest(pool)]

    assert watches == [True, True]
    assert versions(pool) == [2, 1, 1]
    with later(11):
        assert push_latest(pool) is False
    assert versions(pool) == [2, 2, 2]
    assert pool.canary == {}


def test_settings_that_fail_are_taken_back_and_never_reach_the_others(
    pool: Pool, three: list[ScriptedRouter]
) -> None:
    new_policy(pool)
    push_latest(pool)
    three[0].answers = {200: 1020, 503: 20}

    push_latest(pool)
    push_latest(pool)

    assert [row.received for row in three] == [[1, 2, 3], [1, 3], [1, 3]]
    assert document_of(pool.documents.get(version=3)).policy.name == "consort"
    assert "50.0% of 40 requests on r1" in pool.canary["why"]
    assert AuditEntry.objects.filter(action="pool.canary-trip").count() == 1
    assert services.publish_if_changed(pool_id=pool.pk) is None


def test_refusals_for_want_of_room_count_as_failures(
    pool: Pool, three: list[ScriptedRouter]
) -> None:
    new_policy(pool)
    push_latest(pool)
    three[0].answers = {200: 1020, 429: 5}

    push_latest(pool)

    assert pool.canary["state"] == "tripped"


def test_what_ails_every_router_is_not_the_settings_fault(
    pool: Pool, three: list[ScriptedRouter]
) -> None:
    new_policy(pool)
    push_latest(pool)
    for router in three:
        router.answers = {200: 1020, 503: 20}

    assert push_latest(pool) is True
    assert pool.canary["state"] == "observing"


def test_few_requests_say_nothing(pool: Pool, three: list[ScriptedRouter]) -> None:
    new_policy(pool)
    push_latest(pool)
    three[0].answers = {200: 1009, 503: 10}

    assert push_latest(pool) is True
    assert pool.canary["state"] == "observing"


def test_a_canary_that_restarted_is_no_evidence(pool: Pool, three: list[ScriptedRouter]) -> None:
    new_policy(pool)
    push_latest(pool)
    three[0].answers = {503: 30}

    assert push_latest(pool) is True
    assert pool.canary["state"] == "observing"


def test_other_settings_end_the_hold(pool: Pool, three: list[ScriptedRouter]) -> None:
    new_policy(pool)
    push_latest(pool)
    three[0].answers = {200: 1020, 503: 20}
    push_latest(pool)
    push_latest(pool)

    new_policy(pool, "least-requests")
    push_latest(pool)
    with later(11):
        push_latest(pool)

    assert versions(pool) == [4, 4, 4]
    assert document_of(pool.documents.get(version=4)).policy.name == "least-requests"


def test_keys_go_on_while_bad_settings_are_held(pool: Pool, three: list[ScriptedRouter]) -> None:
    new_policy(pool)
    push_latest(pool)
    three[0].answers = {200: 1020, 503: 20}
    push_latest(pool)
    push_latest(pool)
    key, _ = make_inference_key()

    services.publish_if_changed(pool_id=pool.pk)
    push_latest(pool)

    assert versions(pool) == [4, 4, 4]
    found = document_of(pool.documents.get(version=4))
    assert (found.policy.name, [row.id for row in found.keys]) == ("consort", [str(key.pk)])


def test_without_a_time_to_watch_settings_go_on_at_once(pool: Pool) -> None:
    Pool.objects.filter(pk=pool.pk).update(canary_seconds=0)
    new_policy(pool)

    assert push_latest(pool) is False
    assert versions(pool) == [2, 2, 2]


def test_a_key_that_is_taken_away_is_gone_from_all_at_once_even_while_settings_are_watched(
    pool: Pool, three: list[ScriptedRouter]
) -> None:
    key, _ = make_inference_key()
    services.publish_if_changed(pool_id=pool.pk)
    push_latest(pool)
    new_policy(pool)
    push_latest(pool)
    assert versions(pool) == [3, 2, 2]

    key.revoked_at = timezone.now()
    key.save()
    services.publish_if_changed(pool_id=pool.pk)

    assert push_latest(pool) is True
    assert versions(pool) == [4, 4, 4]


def test_a_revoked_key_needs_no_canary(pool: Pool, three: list[ScriptedRouter]) -> None:
    key, _ = make_inference_key()
    services.publish_if_changed(pool_id=pool.pk)
    push_latest(pool)
    key.revoked_at = timezone.now()
    key.save()
    document = services.publish_if_changed(pool_id=pool.pk)
    assert document is not None

    push_latest(pool)

    assert versions(pool) == [3, 3, 3]
    assert not document.pushes.filter(canary=True).exists()


def test_a_canary_that_is_away_is_passed_over(pool: Pool, three: list[ScriptedRouter]) -> None:
    Router.objects.filter(name="r1").update(admin_url="http://127.0.0.1:1", heard_at=None)
    new_policy(pool)

    push_latest(pool)

    assert versions(pool) == [1, 2, 1]
    assert pool.canary["router"] == "r2"


def test_a_canary_that_stops_answering_passes_nothing(
    pool: Pool, three: list[ScriptedRouter]
) -> None:
    new_policy(pool)
    push_latest(pool)
    Router.objects.filter(name="r1").update(admin_url="http://127.0.0.1:1")

    with later(60):
        assert push_latest(pool) is True
    assert versions(pool) == [2, 1, 1]

    Router.objects.filter(name="r1").update(admin_url=three[0].url)
    with later(61):
        push_latest(pool)
    assert versions(pool) == [2, 2, 2]


def test_a_canary_that_is_taken_out_of_use_gives_its_place_to_another(pool: Pool) -> None:
    new_policy(pool)
    push_latest(pool)
    Router.objects.filter(name="r1").update(enabled=False)

    assert push_latest(pool) is True

    assert versions(pool) == [2, 2, 1]
    assert pool.canary["router"] == "r2"


def test_of_fifty_routers_one_refuses_and_one_is_away(tmp_path: Path) -> None:
    """The refusal of one that is not the canary stops nobody else; the absent one gets it later."""
    scripted = [ScriptedRouter() for _ in range(50)]
    try:
        for number, router in enumerate(scripted):
            services.register_router(
                name=f"r{number:02}", admin_url=router.url, public_url=router.url, actor=None,
                token_reference=f"file:{secret_file(tmp_path / str(number))}",
            )  # fmt: skip
        pool = make_pool(canary_seconds=10.0)
        services.publish_if_changed(pool_id=pool.pk)
        push_latest(pool)
        services.poll_routers()
        scripted[20].refusal = (422, {"code": "document-refused", "pointer": "/policy"})
        Router.objects.filter(name="r30").update(admin_url="http://127.0.0.1:1")
        new_policy(pool)
        push_latest(pool)

        with later(11):
            push_latest(pool)

        assert sorted(versions(pool)) == [1, 1] + 48 * [2]
    finally:
        for router in scripted:
            router.close()
