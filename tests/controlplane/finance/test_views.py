"""Exports of the ledger."""

import csv
import io

import pytest
from django.test import Client

from controlplane.audit.models import AuditEntry
from controlplane.console.selectors.money import month_start
from controlplane.finance.models import LedgerHour
from inventory.models import Node
from tests.controlplane.console.scene import make_scene

pytestmark = pytest.mark.django_db


def test_the_months_ledger_is_exported_exactly() -> None:
    scene = make_scene()
    client = Client()
    client.force_login(scene.operator)
    start = month_start()
    LedgerHour.objects.filter(hour__lt=start).delete()

    response = client.get(f"/cost/ledger.csv?month={start:%Y-%m}")
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))

    assert len(rows) == LedgerHour.objects.count()
    assert {row["total"] for row in rows} == {"6.3000000000"}
    assert {row["node"] for row in rows} == {node.hostname for node in scene.nodes}
    assert f"ledger-{start:%Y-%m}.csv" in response["Content-Disposition"]


def test_a_month_is_needed_and_tenants_get_nothing() -> None:
    scene = make_scene()
    operator, ben = Client(), Client()
    operator.force_login(scene.operator)
    ben.force_login(scene.tenant_user)

    for month in ("x", "9999-12", "0000-01", "2026-13"):
        assert operator.get(f"/cost/ledger.csv?month={month}").status_code == 400
    assert ben.get("/cost/ledger.csv?month=2026-11").status_code == 403


def test_an_export_is_audited_and_holds_no_formula() -> None:
    scene = make_scene()
    client = Client()
    client.force_login(scene.operator)
    Node.objects.filter(pk=scene.nodes[0].pk).update(hostname="=cmd|x")

    response = client.get(f"/cost/ledger.csv?month={month_start():%Y-%m}")
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))

    assert "'=cmd|x" in {row["node"] for row in rows}
    assert AuditEntry.objects.get(action="ledger.export").actor == scene.operator
