"""Old decisions go, and so do the oldest when there are too many."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.decisions import services
from controlplane.decisions.models import Decision, ShadowHour
from tests.controlplane.decisions.records import Desk

pytestmark = pytest.mark.django_db


def test_decisions_are_deleted_by_age_and_by_number() -> None:
    desk = Desk()
    for _ in range(6):
        desk.decide()
    services.take_in(desk.page(), router="router-a")
    now = timezone.now()
    ages = {row.pk: age for age, row in enumerate(Decision.objects.order_by("number"))}
    for pk, age in ages.items():
        Decision.objects.filter(pk=pk).update(at=now - timedelta(days=2 * age))

    assert services.delete_old_decisions() == 2
    assert services.delete_old_decisions(keep_rows=3) == 1
    assert services.delete_old_decisions(keep_rows=3) == 0
    assert sorted(Decision.objects.values_list("number", flat=True)) == [1, 2, 3]


def test_hours_of_shadow_policies_stay_for_90_days() -> None:
    now = timezone.now()
    for days in (1, 80, 100):
        ShadowHour.objects.create(pool="chat", policy="random", hour=now - timedelta(days=days))

    services.delete_old_decisions()

    assert ShadowHour.objects.count() == 2
