"""The past of the demo site: complete, marked, the same each time, with its facts to find."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db.models import Sum

from controlplane.finance.models import ClassHour, LedgerHour
from controlplane.metering.models import UsageHour
from controlplane.metering.services import reconcile_hour
from controlplane.serving.models import ChangePlan, RoleAssignment
from controlplane.telemetry.models import Alert, EngineHour, ScrapeTarget, UtilisationHour
from deploy.demo import history, site
from inventory.services.catalogue import load_catalogue
from inventory.services.importing import import_file
from tests.controlplane.metering.rows import unchanging
from tests.factories import make_admin, make_olga, make_user

pytestmark = pytest.mark.django_db
UNTIL = datetime.now(UTC).replace(minute=20, second=0, microsecond=0)
END = UNTIL.replace(minute=0)
DAYS = 15


@pytest.fixture(autouse=True)
def demo_site(db: None) -> None:
    load_catalogue()
    run = import_file(
        content=site.SITE_FILE.read_bytes(),
        file_name="site.csv",
        dry_run=False,
        actor=make_admin(),
    )
    assert run.error_count == 0, run.errors
    site._prices()
    site._pool()
    make_olga()
    make_user("andrea", "approver")


def test_every_hour_is_there_and_marked() -> None:
    assert history.write_history(until=UNTIL, days=2)

    hours = 2 * 24
    assert UtilisationHour.objects.count() == 36 * hours
    assert EngineHour.objects.count() == 20 * hours
    assert UsageHour.objects.count() == 4 * hours
    assert LedgerHour.objects.count() == 7 * hours
    for model in (UtilisationHour, EngineHour, UsageHour, LedgerHour):
        assert set(model.objects.order_by().values_list("source", flat=True).distinct()) == {
            "simulated"
        }
        newest = model.objects.order_by("-hour").first()
        assert newest is not None
        assert newest.hour == END - timedelta(hours=1)


def test_money_and_tokens_add_up() -> None:
    history.write_history(until=UNTIL, days=2)

    ledger = LedgerHour.objects.aggregate(sum=Sum("total"))["sum"]
    assert ClassHour.objects.aggregate(sum=Sum("amount"))["sum"] == ledger
    assert not LedgerHour.objects.filter(power__isnull=True).exists()
    for back in (1, 20, 48):
        row = reconcile_hour(pool=site.POOL, hour=END - timedelta(hours=back))
        assert row.unattributed_tokens == 0
        assert row.gateway_tokens > 0
    assert ledger > Decimal(100)


def test_writing_again_changes_nothing() -> None:
    history.write_history(until=UNTIL, days=1)
    before = [unchanging(model) for model in (UtilisationHour, UsageHour, LedgerHour)]

    again = history.write_history(until=UNTIL + timedelta(hours=30), days=1)

    assert again is False
    assert [unchanging(model) for model in (UtilisationHour, UsageHour, LedgerHour)] == before


def test_an_interrupted_run_is_completed() -> None:
    history.write_history(until=UNTIL, days=1)
    LedgerHour.objects.all().delete()

    assert history.write_history(until=UNTIL + timedelta(hours=3), days=1)

    assert LedgerHour.objects.count() == 7 * 24
    assert UtilisationHour.objects.count() == 36 * 24


def test_the_planted_facts_are_found_by_the_product() -> None:
    history.write_history(until=UNTIL, days=DAYS)

    slow, silent = Alert.objects.order_by("-kind")
    assert (slow.kind, slow.node.hostname, slow.accelerator and slow.accelerator.slot) == (
        "slower_than_class",
        *history.SLOW,
    )
    assert slow.facts["share_of_class"] == pytest.approx(1 / 3, abs=0.04)
    assert abs(slow.since - (END - history.SLOW_SINCE)) <= timedelta(hours=2)
    assert (silent.kind, silent.node.hostname) == ("exporter_silent", "npu-kr-41")
    assert {alert.source for alert in (slow, silent)} == {"simulated"}

    quiet = UtilisationHour.objects.filter(
        accelerator__node__hostname="npu-kr-41", hour=END - 1 * history.HOUR
    )
    assert {(row.utilisation, row.samples) for row in quiet} == {(None, 0)}
    assert ScrapeTarget.objects.get(kind="exporter").failing_since is not None


def test_the_change_that_went_back_is_in_the_role_ledger() -> None:
    history.write_history(until=UNTIL, days=DAYS)

    plan = ChangePlan.objects.get()
    assert (plan.state, plan.simulated) == ("rolled_back", True)
    assert "the guard is 1.5 s" in plan.outcome
    assert [wave.state for wave in plan.waves.order_by("position")] == ["rolled_back", "skipped"]
    roles = RoleAssignment.objects.filter(change_plan=plan).order_by("valid_from")
    assert next((row.role, row.valid_to - row.valid_from) for row in roles if row.valid_to) == (
        "decode",
        history.ROLLED_BACK_FOR,
    )
    seconds = ClassHour.objects.filter(
        ledger_hour__node__hostname="gpu-kr-11", role="decode"
    ).aggregate(sum=Sum("accelerator_seconds"))["sum"]
    assert seconds == 4 * history.ROLLED_BACK_FOR.total_seconds()
