"""Who sees which decisions, and how shadow policies are averaged."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.decisions import selectors, services
from controlplane.decisions.models import Decision, ShadowHour
from tests.controlplane.decisions.records import Desk
from tests.factories import make_ana, make_olga, make_tenant, make_user

pytestmark = pytest.mark.django_db


def test_tenants_see_their_own_records_cut_to_what_is_theirs() -> None:
    desk = Desk()
    desk.decide()
    desk.decide(tenant="tenant-b")
    services.take_in(desk.page(), router="router-a")
    ana = make_ana(tenant=make_tenant(slug="tenant-a"))

    (row,) = selectors.decisions_for_viewer(ana)

    assert "candidates" not in selectors.record_for_viewer(row, ana)
    assert "candidates" in selectors.record_for_viewer(row, make_olga())
    assert selectors.decisions_for_viewer(make_olga()).count() == 2
    assert not selectors.decisions_for_viewer(make_user("nobody")).exists()


def test_shadow_policies_are_averaged_over_the_window_least_regret_first() -> None:
    now = timezone.now()
    for policy, hours, regret in (("a", 1, 8.0), ("a", 30, 99.0), ("b", 1, -2.0)):
        ShadowHour.objects.create(
            pool="chat", policy=policy, hour=now - timedelta(hours=hours), asked=8, agreed=2,
            priced=4, regret_seconds=regret, ttft_seconds=1.0, live_ttft_seconds=2.0,
        )  # fmt: skip

    rows = selectors.shadow_figures(make_olga(), hours=24)

    assert [(row.policy, row.regret_seconds, row.agreement) for row in rows] == [
        ("b", -0.5, 0.25),
        ("a", 2.0, 0.25),
    ]


def test_a_policy_that_was_never_priced_has_no_regret() -> None:
    ShadowHour.objects.create(pool="chat", policy="a", hour=timezone.now(), asked=1)

    (row,) = selectors.shadow_figures(make_olga())

    assert row.regret_seconds is None
    assert Decision.objects.count() == 0
