"""Groups of prompts that begin alike, with the shares that endpoints held of the latest."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.decisions import selectors, services
from controlplane.decisions.models import Decision
from tests.controlplane.decisions.records import Desk
from tests.factories import make_ana, make_olga

pytestmark = pytest.mark.django_db


@pytest.mark.lesson("W10")
def test_the_hottest_groups_come_first_with_who_holds_them() -> None:
    desk = Desk()
    for text in ("group 1 " * 2000, "group 1 " * 2000, "group 0 " * 1500):
        desk.decide(text=text)
    services.take_in(desk.page(), router="router-a")
    Decision.objects.update(at=timezone.now())

    found = selectors.prefix_map(make_olga())

    assert [group.requests for group in found.groups] == [2, 1]
    hottest = found.groups[0]
    assert hottest.latest in hottest.shares
    assert 0.5 < hottest.shares[hottest.latest] <= 1
    assert set(found.endpoints) >= set(hottest.shares)
    assert selectors.prefix_map(make_ana()).groups == ()


def test_old_decisions_are_no_part_of_the_map() -> None:
    desk = Desk()
    desk.decide()
    services.take_in(desk.page(), router="router-a")
    Decision.objects.update(at=timezone.now() - timedelta(hours=2))

    assert selectors.prefix_map(make_olga()).group_count == 0
