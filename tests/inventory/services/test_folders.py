"""Folders that agents counted."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inventory.errors import ReportRefusedError
from inventory.models import NodeFolder
from inventory.services import record_report
from tests.factories import make_olga
from tests.inventory.factories import make_node

pytestmark = pytest.mark.django_db

FOLDER = {"path": "/srv/models/granite", "size_bytes": 10**9, "files": 4, "sha256": "a" * 64,
          "seconds": 2.0, "error": ""}  # fmt: skip


def report(node: Any, *folders: dict[str, Any], seconds_ago: float = 10) -> None:
    record_report(
        cluster_id=node.cluster_id, hostname=node.hostname, actor=make_olga(),
        report={
            "hostname": node.hostname, "vendor": node.vendor, "tool": "made",
            "seen_at": (timezone.now() - timedelta(seconds=seconds_ago)).isoformat(),
            "accelerators": [], "folders": list(folders),
        },
    )  # fmt: skip


def test_a_folder_is_kept_with_the_speed_at_which_it_was_read() -> None:
    report(make_node(), FOLDER)

    row = NodeFolder.objects.get()
    assert (row.path, row.sha256, row.size_bytes) == (FOLDER["path"], "a" * 64, 10**9)
    assert row.read_bytes_per_second == 500_000_000


def test_the_latest_report_wins_whatever_order_they_come_in() -> None:
    node = make_node()

    report(node, FOLDER | {"sha256": "b" * 64}, seconds_ago=5)
    report(node, FOLDER, seconds_ago=20)

    assert NodeFolder.objects.get().sha256 == "b" * 64


def test_a_folder_that_could_not_be_counted_keeps_the_reason_and_no_figure() -> None:
    report(make_node(), {"path": "/srv/m", "error": "/srv/m is not there."})

    row = NodeFolder.objects.get()
    assert (row.size_bytes, row.sha256, row.read_bytes_per_second) == (None, "", None)
    assert row.error == "/srv/m is not there."


def test_a_small_folder_says_nothing_of_the_storage() -> None:
    report(make_node(), FOLDER | {"size_bytes": 100})

    assert NodeFolder.objects.get().read_bytes_per_second is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"path": "models"}, "absolute path"),
        ({"sha256": "xyz"}, "SHA-256"),
        ({"size_bytes": -1}, "size_bytes is not a whole number"),
        ({"files": True}, "files is not a whole number"),
        ({"seconds": "1"}, "seconds is not a number"),
        ({"shell": "rm"}, "not an object with members"),
    ],
)
def test_a_folder_that_makes_no_sense_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ReportRefusedError, match=words):
        report(make_node(), FOLDER | change)


def test_a_folder_is_named_once_and_not_too_many_are() -> None:
    node = make_node()

    with pytest.raises(ReportRefusedError, match="there twice"):
        report(node, FOLDER, FOLDER)
    with pytest.raises(ReportRefusedError, match="at most 64"):
        report(node, *({**FOLDER, "path": f"/srv/{number}"} for number in range(65)))
