"""Who sees which usage, and sums that equal the whole."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.metering import selectors
from controlplane.metering.models import RouterProgress, UsageHour
from tests.controlplane.metering.rows import HOUR, make_usage_hour
from tests.factories import make_ana, make_ben, make_olga, make_tenant, make_user

pytestmark = pytest.mark.django_db


def test_ben_sees_nothing_of_anas() -> None:
    ana, ben = make_ana(), make_ben()
    make_usage_hour(tenant=ana.tenant.slug)

    assert selectors.usage_hours_for_viewer(ana).count() == 1
    assert selectors.usage_hours_for_viewer(ben).count() == 0


def test_a_tenant_named_like_the_router_does_not_see_its_first_prompts() -> None:
    tenant = make_tenant(slug="consort")
    make_usage_hour(tenant="consort", key="warm-up", waste_output=1)
    theirs = make_usage_hour(tenant="consort")

    found = selectors.usage_hours_for_viewer(make_ana(tenant=tenant))

    assert list(found) == [theirs]


def test_finance_sees_all_and_the_fleets_operator_nothing() -> None:
    make_usage_hour(tenant=make_tenant().slug)

    assert selectors.usage_hours_for_viewer(make_user(None, "finance")).count() == 1
    assert selectors.usage_hours_for_viewer(make_olga()).count() == 0


@pytest.mark.parametrize("groups", [["project"], ["role", "model"], ["tenant", "key", "policy"]])
@pytest.mark.parametrize("granularity", [None, "hour", "day", "month"])
def test_sums_over_groups_equal_the_whole(groups: list[str], granularity: str | None) -> None:
    for number in range(24):
        make_usage_hour(
            hour=HOUR + timedelta(hours=number * 7),
            project=f"p{number % 3}",
            role=("both", "decode")[number % 2],
            key=f"k{number % 5}",
            output=number,
        )
    hours = UsageHour.objects.all()

    parts = selectors.usage_grouped(hours, group_by=groups, granularity=granularity)

    whole = selectors.usage_grouped(hours)[0]
    for name in UsageHour.BUCKETS:
        assert sum(part.buckets[name] for part in parts) == whole.buckets[name]
    assert sum(part.counts["requests"] for part in parts) == whole.counts["requests"]
    assert len(parts) > 1


def test_no_usage_is_no_row() -> None:
    assert selectors.usage_grouped(UsageHour.objects.all()) == []


def test_usage_is_complete_when_every_router_has_delivered_beyond_it() -> None:
    make_usage_hour()
    end = HOUR + timedelta(hours=1)
    RouterProgress.objects.create(router="r1", complete_until=end)
    late = RouterProgress.objects.create(router="r2", complete_until=HOUR)

    def complete() -> bool:
        return selectors.usage_grouped(UsageHour.objects.all())[0].complete

    assert not complete()
    late.complete_until = end + timedelta(seconds=1)
    late.save()
    assert complete()
    late.complete_until = None
    late.save()
    assert not complete()
    late.lost_at = end
    late.save()
    assert complete()


@pytest.mark.parametrize(
    ("granularity", "end"),
    [
        ("hour", HOUR + timedelta(hours=1)),
        ("day", HOUR.replace(hour=0) + timedelta(days=1)),
        ("month", datetime(2026, 12, 1, tzinfo=UTC)),
    ],
)
def test_a_running_day_or_month_is_not_complete(granularity: str, end: datetime) -> None:
    make_usage_hour()
    progress = RouterProgress.objects.create(router="r1", complete_until=end - timedelta(seconds=1))

    def complete() -> bool:
        (row,) = selectors.usage_grouped(UsageHour.objects.all(), granularity=granularity)
        return row.complete

    assert not complete()
    progress.complete_until = end
    progress.save()
    assert complete()


def test_no_more_rows_are_read_than_were_asked_for() -> None:
    for number in range(4):
        make_usage_hour(project=f"p{number}")

    rows = selectors.usage_grouped(UsageHour.objects.all(), group_by=["project"], limit=3)

    assert len(rows) == 3


def test_figures_that_are_not_the_engines_say_so() -> None:
    make_usage_hour(requests_ok=9, requests_aborted=1, counted_by_router=1)

    assert selectors.usage_grouped(UsageHour.objects.all())[0].data_quality == [
        "counted_by_router",
        "aborted",
    ]


def test_grouping_needs_the_same_queries_for_any_number_of_rows(
    django_assert_num_queries: Any,
) -> None:
    for number in range(30):
        make_usage_hour(project=f"p{number}")
        if number in (4, 29):
            with django_assert_num_queries(4):
                selectors.usage_grouped(UsageHour.objects.all(), group_by=["project"])
