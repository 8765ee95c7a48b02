"""Alerts are found in the figures, open once and resolve by themselves."""

from datetime import datetime, timedelta

import pytest

from controlplane.telemetry import services
from controlplane.telemetry.models import Alert, UtilisationHour
from inventory.models import Node
from tests.controlplane.telemetry.rows import HOUR, make_node, make_target

pytestmark = pytest.mark.django_db


def write_hours(
    node: Node, *, hours: int, slow_slot: int | None, until: datetime = HOUR, speed: float = 900.0
) -> None:
    UtilisationHour.objects.bulk_create(
        UtilisationHour(
            accelerator=accelerator,
            hour=until - timedelta(hours=back),
            utilisation=0.6,
            output_tokens_per_second=speed / 3 if accelerator.slot == slow_slot else speed,
            samples=720,
            expected_samples=720,
            role="both",
            pool="granite",
            source="simulated",
        )
        for back in range(hours)
        for accelerator in node.accelerators.all()
    )


def test_a_card_three_times_slower_than_its_sisters_opens_one_alert() -> None:
    node = make_node(accelerators=8)
    write_hours(node, hours=72, slow_slot=None, until=HOUR - timedelta(hours=48))
    write_hours(node, hours=48, slow_slot=5)

    opened = services.detect_alerts(now=HOUR)
    again = services.detect_alerts(now=HOUR)

    assert [alert.kind for alert in opened] == ["slower_than_class"]
    assert again == []
    alert = Alert.objects.get()
    assert alert.accelerator is not None
    assert alert.accelerator.slot == 5
    assert alert.since == HOUR - timedelta(hours=47)
    assert alert.facts["share_of_class"] == 0.333
    assert alert.source == "simulated"


def test_an_alert_resolves_when_the_card_is_as_fast_as_its_sisters_again() -> None:
    node = make_node(accelerators=4)
    write_hours(node, hours=24, slow_slot=1)
    services.detect_alerts(now=HOUR)

    later = HOUR + timedelta(hours=30)
    write_hours(node, hours=26, slow_slot=None, until=later)
    services.detect_alerts(now=later)

    assert Alert.objects.get().resolved_at == later


@pytest.mark.parametrize(
    ("accelerators", "hours"),
    [pytest.param(8, 3, id="too-few-hours"), pytest.param(2, 48, id="too-few-sisters")],
)
def test_too_little_evidence_is_no_alert(accelerators: int, hours: int) -> None:
    write_hours(make_node(accelerators=accelerators), hours=hours, slow_slot=0)

    assert services.detect_alerts(now=HOUR) == []


def test_another_role_is_another_class() -> None:
    node = make_node(accelerators=4)
    write_hours(node, hours=24, slow_slot=1)
    UtilisationHour.objects.filter(accelerator__slot=1).update(role="decode")

    assert services.detect_alerts(now=HOUR) == []


def test_a_source_silent_for_a_while_opens_an_alert() -> None:
    node = make_node()
    since = HOUR - timedelta(hours=3)
    make_target(node=node, kind="exporter", engine="", instance="", failing_since=since)
    make_target(node=node, failing_since=HOUR - timedelta(minutes=1))

    opened = services.detect_alerts(now=HOUR)

    assert [(alert.kind, alert.since) for alert in opened] == [("exporter_silent", since)]
