"""What a discovery of 1,000 nodes costs, against the fake cluster in a process of its own.

    .venv/bin/python -m pytest -s -p no:randomly tests/benchmarks/bench_discovery.py

Prints seconds, statements and memory of: a first list in which nobody planned a node, accepting
them all, a list of planned nodes as they are, and a run that follows the watches.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from inventory import services
from inventory.models import Cluster, Discovery, Finding, Node
from tests.factories import make_olga
from tests.inventory.factories import make_cluster

NODES = 1_000
BUDGET_SECONDS = 30.0


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of 1,000 nodes, a third of them with ResourceSlices."""
    command = [
        sys.executable, "-m", "tests.kubernetes.fake", "--port", "0", "--nodes", str(NODES),
        "--slices", "--credentials", str(tmp_path / "lab"),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        sys.stdout.write(f"\n{process.stdout.readline()}")
        with override_settings(CLUSTER_CREDENTIALS_DIR=str(tmp_path)):
            yield make_cluster(kind="kubernetes", connection_reference="lab")
        process.terminate()


def measured(what: str, work: Any) -> float:
    """Run, and print what it cost."""
    asked = 0

    def count(execute: Any, *arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        return execute(*arguments)

    began = time.perf_counter()
    with connection.execute_wrapper(count):
        work()
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"{what}: {seconds:.2f} s, {asked} statements, peak {peak:.0f} MiB\n")
    return seconds


@pytest.mark.django_db(transaction=True)
def test_what_a_thousand_nodes_cost(lab: Cluster) -> None:
    call_command("migrate", verbosity=0)
    services.load_catalogue()
    olga = make_olga()

    def discover() -> None:
        assert services.discover_cluster(cluster_id=lab.pk), Discovery.objects.get().error

    def relist() -> None:
        Discovery.objects.update(listed_at=timezone.now() - timedelta(hours=1))
        discover()

    first = measured("first list, nobody planned them", discover)
    known = Finding.objects.filter(state="open").exclude(suggestion__model=None)
    sys.stdout.write(f"  findings {Finding.objects.count()}, with a known model {known.count()}\n")
    operation = services.start_accepting(
        cluster=lab.slug, kind="unknown-node", model="intel-gaudi3", reason="ours", actor=olga
    )
    measured("accepting them", lambda: services.run_accepting(operation_id=operation.pk))
    sys.stdout.write(f"  nodes {Node.objects.count()}\n")
    planned = measured("list after accepting", relist)
    again = measured("list again, nothing changed", relist)
    measured("follow, nothing changed (2 s per watch)", discover)

    assert max(first, planned, again) < BUDGET_SECONDS
