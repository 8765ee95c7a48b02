"""Utilisation with its coverage, and who sees telemetry."""

from datetime import timedelta
from typing import Any

import pytest

from controlplane.telemetry import selectors
from controlplane.telemetry.models import UtilisationHour
from inventory.models import Accelerator, Node
from tests.controlplane.telemetry.rows import (
    HOUR,
    make_accelerator_model,
    make_node,
    make_target,
)
from tests.factories import make_ana, make_olga

pytestmark = pytest.mark.django_db
END = HOUR + timedelta(hours=1)


def write(node: Node, utilisation: float | None, **overrides: Any) -> list[Accelerator]:
    defaults = {
        "hour": HOUR,
        "samples": 0 if utilisation is None else 720,
        "expected_samples": 720,
        "role": "both",
        "pool": "granite",
        "source": "simulated",
    }
    accelerators = list(node.accelerators.all())
    UtilisationHour.objects.bulk_create(
        UtilisationHour(accelerator=each, utilisation=utilisation, **defaults | overrides)
        for each in accelerators
    )
    return accelerators


def figures(*group_by: str) -> list[selectors.UtilisationFigures]:
    return selectors.utilisation_by(
        UtilisationHour.objects.all(), group_by=group_by, start=HOUR, end=END
    )


def test_silent_accelerators_do_not_lower_the_average() -> None:
    write(make_node(accelerators=2), 0.6)
    since = HOUR - timedelta(hours=2)
    write(make_node(accelerators=2), None, not_scraped_since=since)

    (row,) = figures("vendor")

    assert row.group == ("amd",)
    assert row.utilisation == pytest.approx(0.6)
    assert (row.accelerators, row.accelerators_with_data, row.coverage) == (4, 2, 0.5)
    assert row.not_scraped_since == since


def test_measured_idle_is_zero_and_unknown_is_none() -> None:
    write(make_node(model=make_accelerator_model(vendor="amd")), 0.0)
    write(make_node(model=make_accelerator_model(vendor="nvidia")), None)

    assert [row.utilisation for row in figures("vendor")] == [0.0, None]


def test_averages_weigh_by_samples() -> None:
    write(make_node(accelerators=1), 1.0, samples=720)
    write(make_node(accelerators=1), 0.0, samples=240)

    (row,) = figures("role")

    assert row.utilisation == pytest.approx(0.75)


def test_groups_may_be_combined_at_the_same_number_of_queries(
    django_assert_num_queries: Any,
) -> None:
    for count in (1, 10):
        for number in range(count):
            write(make_node(accelerators=1), number / 10)
        with django_assert_num_queries(2):
            rows = figures("vendor", "node")
    assert len(rows) == 11


def test_tenants_see_nothing_of_the_fleet() -> None:
    make_target()
    write(make_node(), 0.5)

    assert selectors.targets_for_viewer(make_olga()).count() == 1
    assert selectors.utilisation_for_viewer(make_olga()).count() == 2
    ana = make_ana()
    for read in (
        selectors.targets_for_viewer,
        selectors.utilisation_for_viewer,
        selectors.counters_for_viewer,
        selectors.engine_hours_for_viewer,
        selectors.alerts_for_viewer,
    ):
        assert read(ana).count() == 0
