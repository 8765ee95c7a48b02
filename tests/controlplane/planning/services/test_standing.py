"""Standing advice: one finding a quarter, a draft after half an hour of gain, once."""

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.operations import leases
from controlplane.planning import services
from controlplane.planning.models import Advice
from controlplane.planning.services.standing import AUTHOR, WINDOW, quarter_of
from controlplane.serving import services as serving
from controlplane.serving.models import ChangePlan, Pool
from controlplane.tenancy.models import User
from tests.controlplane.planning.rows import make_advice, make_events, make_serving_fleet

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LOAD: dict[str, Any] = {"input_uncached": 500, "output": 800}
RATE = 18.0
"""Long answers, so that few requests a second are a load that one accelerator cannot decode."""


@pytest.fixture
def starved(settings: Any) -> Pool:
    """Three accelerators prefill for one that decodes, under a load that this one cannot bear."""
    settings.PLANNING_REQUESTS = 900
    pool, _node = make_serving_fleet(prefill=3, decode=1, both=0)
    return pool


def load(pool: Pool, until: datetime) -> None:
    """A minute of answers; a pool's first request is where its window begins."""
    make_events(pool, round(RATE * 60), until=until, seconds=60.0, **LOAD)


def look(*, now: datetime) -> int:
    """Of all pools that are asked about, as beat and workers do it; how many findings."""
    sent = [pool.pk for pool in Pool.objects.filter(state=Pool.State.ACTIVE).order_by("slug")]
    until = quarter_of(now)
    return sum(services.advise_standing(pool_id=one, until=until, now=now) for one in sent)


def test_a_quarter_is_the_last_full_one() -> None:
    assert quarter_of(NOON.replace(minute=29, second=59)) == NOON.replace(minute=15)


def test_a_pool_without_load_or_far_from_its_limit_is_left_alone() -> None:
    idle, _ = make_serving_fleet(both=2)
    calm, _ = make_serving_fleet(both=2)
    make_events(calm, 60, until=NOON)

    assert look(now=NOON) == 0
    assert not Advice.objects.exists()
    assert idle.pk != calm.pk


def test_a_finding_has_its_load_and_a_second_delivery_writes_none(starved: Pool) -> None:
    load(starved, NOON)

    assert look(now=NOON) == 1
    assert look(now=NOON + timedelta(minutes=3)) == 0

    (row,) = Advice.objects.all()
    assert row.is_standing
    assert row.measured_to == NOON
    assert row.content["offered_rps"] == pytest.approx(RATE, rel=0.05)
    assert row.gain is not None
    assert row.gain >= 0.10
    assert not ChangePlan.objects.filter(state="draft").exists()


KNOWN: dict[str, Any] = {}
"""What the planner finds for the starved pool, computed once: groups have equal names."""


def findings(pool: Pool, *minutes: int, **overrides: Any) -> None:
    """Earlier findings as the planner makes them, so many minutes before noon."""
    if not KNOWN:
        yesterday = NOON - timedelta(days=1)
        load(pool, yesterday)
        look(now=yesterday)
        row = Advice.objects.get(pool=pool, measured_to=yesterday)
        KNOWN.update(content=row.content, verdict=row.verdict, gain=row.gain)
        row.delete()
    for before in minutes:
        until = NOON - timedelta(minutes=before)
        times = {"is_standing": True, "measured_to": until, "measured_from": until - WINDOW}
        make_advice(pool, {}, **KNOWN | times | overrides)


def drafts() -> list[ChangePlan]:
    return list(ChangePlan.objects.filter(state=ChangePlan.State.DRAFT))


def test_half_an_hour_of_gain_opens_one_draft_and_applies_nothing(starved: Pool) -> None:
    findings(starved, 15, 30)
    load(starved, NOON)

    look(now=NOON)

    (plan,) = drafts()
    assert plan.author == User.objects.get(username=AUTHOR)
    assert not plan.author.has_usable_password()
    assert plan.pool == starved
    assert Advice.objects.get(change_plan=plan).measured_to == NOON
    # Looked at again, as after a message that came twice: the draft is open, so no second one.
    Advice.objects.filter(measured_to=NOON).update(measured_to=NOON - 2 * timedelta(days=1))
    look(now=NOON)
    assert drafts() == [plan]


def test_a_draft_that_was_cancelled_is_not_opened_again_a_quarter_later(starved: Pool) -> None:
    findings(starved, 15, 30)
    load(starved, NOON)
    look(now=NOON)
    (plan,) = drafts()
    serving.cancel_plan(plan_id=plan.pk, actor=plan.author)

    load(starved, NOON + WINDOW)
    found = look(now=NOON + WINDOW)
    after_a_quarter = drafts()
    ChangePlan.objects.filter(pk=plan.pk).update(ended_at=timezone.now() - timedelta(days=2))
    load(starved, NOON + 2 * WINDOW)
    look(now=NOON + 2 * WINDOW)

    assert (found, after_a_quarter) == (1, [])
    assert len(drafts()) == 1


def test_each_active_pool_has_a_task_of_its_own(
    sent_tasks: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    first, second, gone = (make_serving_fleet(both=1)[0] for _ in range(3))
    Pool.objects.filter(pk=gone.pk).update(state=Pool.State.RETIRED)

    with django_capture_on_commit_callbacks(execute=True):
        assert services.ask_standing(now=NOON + timedelta(minutes=2)) == 2

    name, until = "controlplane.planning.tasks.advise_standing_of", NOON.isoformat()
    assert sorted(sent_tasks) == sorted((name, (str(pool.pk), until)) for pool in (first, second))


def test_a_task_that_waited_for_a_whole_tick_does_nothing(starved: Pool) -> None:
    load(starved, NOON)

    late = services.advise_standing(pool_id=starved.pk, until=NOON, now=NOON + 2 * WINDOW)

    assert late is False
    assert not Advice.objects.exists()


def test_a_task_that_was_sent_right_before_its_quarter_ended_is_done(starved: Pool) -> None:
    load(starved, NOON)

    after = services.advise_standing(pool_id=starved.pk, until=NOON, now=NOON + WINDOW)

    assert after is True
    assert Advice.objects.get().measured_to == NOON


def test_a_pool_that_is_looked_at_is_not_looked_at_twice(starved: Pool) -> None:
    load(starved, NOON)
    lease = leases.acquire(f"planning.standing.{starved.pk}", holder="another", seconds=60)

    assert lease is not None
    assert look(now=NOON) == 0


def test_a_pool_that_cannot_be_looked_at_does_not_keep_the_others_from_theirs(
    starved: Pool,
) -> None:
    broken, _node = make_serving_fleet(both=2)
    # Of an engine that a later version took away; its slug makes it the first.
    Pool.objects.filter(pk=broken.pk).update(slug="a-first", engine="gone")
    broken.refresh_from_db()
    load(broken, NOON)
    load(starved, NOON)

    assert look(now=NOON) == 1
    assert Advice.objects.get().pool == starved


def test_roles_that_answer_nothing_in_time_need_no_gain_in_percent(starved: Pool) -> None:
    findings(starved)
    content = deepcopy(KNOWN["content"])
    for option in content["alternatives"]:
        if option["kind"] == "now":
            option["outcome"]["goodput_rps"] = 0.0
    findings(starved, 15, 30, gain=None, content=content)
    load(starved, NOON)

    look(now=NOON)

    assert len(drafts()) == 1


@pytest.mark.parametrize(
    ("minutes", "overrides"),
    [
        ((15,), {}),
        ((30,), {}),
        ((15, 30), {"gain": 0.05}),
        ((15, 30), {"gain": None}),
        ((15, 30), {"verdict": "keep"}),
    ],
)
def test_a_gain_that_does_not_last_opens_none(
    starved: Pool, minutes: tuple[int, ...], overrides: dict[str, Any]
) -> None:
    findings(starved, *minutes, **overrides)
    load(starved, NOON)

    look(now=NOON)

    assert drafts() == []


def test_old_findings_go_and_those_with_a_plan_stay() -> None:
    pool, node = make_serving_fleet(both=2)
    members = {"amd-mi325x": [str(one.pk) for one in node.accelerators.all()]}
    common = {"is_standing": True, "measured_from": NOON - WINDOW}
    old = make_advice(pool, members, measured_to=NOON, **common)
    kept = make_advice(pool, members, measured_to=NOON + WINDOW, **common)
    Advice.objects.filter(pk=kept.pk).update(change_plan=ChangePlan.objects.first())

    deleted = services.forget_standing(now=old.created_at + timedelta(days=31))

    assert deleted == 1
    assert list(Advice.objects.all()) == [kept]
