"""What a look at every pool in a cluster costs, against the fake cluster in a process of its own.

    POOLS=200 .venv/bin/python -m pytest -s -p no:randomly tests/benchmarks/bench_resync.py

Ten engines for each pool, as objects that were applied by the target. Nothing listens at their
Pods' addresses, so endpoints stay in the state that the first look gave them. Prints seconds, CPU
seconds of this process, statements and memory.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings

from controlplane.serving import deployments, services
from controlplane.serving.models import Endpoint, Pool, Workload
from inventory.kubernetes.client import ClusterClient
from inventory.models import Accelerator, Cluster
from inventory.services import clusters
from tests.controlplane.serving.clusters import make_container_pool
from tests.controlplane.serving.factories import make_fleet_node
from tests.inventory.factories import make_cluster

POOLS = int(os.environ.get("POOLS", "200"))
ENGINES = 10
"""Of each pool, on as many nodes."""
BUDGET_SECONDS = 60.0
BUDGET_MIB = 500


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster whose nodes are those of the inventory."""
    command = [
        sys.executable, "-m", "tests.kubernetes.fake", "--port", "0", "--nodes", "0",
        "--credentials", str(tmp_path / "lab"),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with override_settings(CLUSTER_CREDENTIALS_DIR=str(tmp_path)):
            yield make_cluster(kind="kubernetes", connection_reference="lab", slug="lab")
        process.terminate()


def measured(what: str, work: Any) -> float:
    """Run, and print what it cost."""
    asked = 0

    def count(execute: Any, *arguments: Any) -> Any:
        nonlocal asked
        asked += 1
        return execute(*arguments)

    began, used = time.perf_counter(), time.process_time()
    with connection.execute_wrapper(count):
        work()
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(
        f"{what}: {seconds:.1f} s, CPU {cpu:.1f} s, {asked} statements, peak {peak:.0f} MiB\n"
    )
    return seconds


def fill(lab: Cluster) -> None:
    """Pools, nodes and wanted engines, in the database and as nodes of the cluster."""
    client = ClusterClient(clusters.connection_of("lab"))
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": lab.namespace}})
    for number in range(POOLS):
        pool = make_container_pool()
        for place in range(ENGINES // 2):
            name = f"n-{number}-{place}"
            node = make_fleet_node(cluster=lab, accelerators=2, hostname=name)
            client.create(cluster_node(name))
            for accelerator in node.accelerators.select_related("model", "node__cluster"):
                want(pool, accelerator)


def cluster_node(name: str) -> dict[str, Any]:
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "250", "amd.com/gpu": "2"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }  # fmt: skip


def want(pool: Pool, accelerator: Accelerator) -> None:
    Workload.objects.create(
        pool=pool, accelerator=accelerator, node=accelerator.node, role="both",
        name=deployments.engine_name(accelerator), target="kubernetes", desired_state="running",
        desired=deployments.desired_spec(pool, accelerator, role="both"), generation=1,
    )  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_what_a_look_at_every_pool_costs(lab: Cluster) -> None:
    sys.stdout.write(f"\n{POOLS} pools of {ENGINES} engines\n")
    fill(lab)
    measured("first look, everything is applied", services.reconcile_pools)
    deadline = time.monotonic() + 600
    while Endpoint.objects.count() < POOLS * ENGINES and time.monotonic() < deadline:
        measured("look while Pods start", services.reconcile_pools)
    assert Endpoint.objects.count() == POOLS * ENGINES
    Endpoint.objects.update(state="ready", observed_at="2100-01-01T00:00:00Z")
    measured("look after engines became ready", services.reconcile_pools)
    version = versions()

    seconds = measured("look, nothing changed", services.reconcile_pools)

    assert versions() == version, "a steady state writes nothing"
    assert seconds < BUDGET_SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 < BUDGET_MIB


def versions() -> str:
    """Changes with every write to the cluster."""
    client = ClusterClient(clusters.connection_of("lab"))
    return client.list("v1", "Namespace").resource_version
