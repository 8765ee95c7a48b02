"""Files of models on a cluster's nodes: the Job that is asked for, and what its end says."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from controlplane.serving import services
from controlplane.serving.models import ChangePlan, Pool, Wave
from controlplane.serving.targets.base import WantedFiles
from controlplane.serving.targets.kubernetes import prefetching
from controlplane.serving.targets.kubernetes.prefetching import job, job_name, seen
from inventory.files import measure_folder
from tests.controlplane.serving.boundary import ScriptedRouter
from tests.controlplane.serving.clusters import Place, make_container_pool
from tests.controlplane.serving.factories import make_applying, make_artefact
from tests.controlplane.serving.processes import PROJECT
from tests.controlplane.serving.services.test_loop_in_a_cluster import run_to_the_end
from tests.factories import make_olga
from tests.inventory.test_objectstore import FakeStore
from tests.kubernetes.fake.kubelets import PodRun

WANTED = WantedFiles(
    artefact="granite-files", node="1", hostname="gpu-1", cluster="c", namespace="engines",
    kind="node-path", uri="/srv/granite", folder="/srv/granite", sha256="a" * 64,
    image="registry.example/consort:1",
)  # fmt: skip
STORED = replace(
    WANTED, kind="s3", uri="s3://models/granite", endpoint="https://s3.local", secret="store-keys"
)
DONE = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
SAID = {"sight": "there", "size_bytes": 5, "sha256": "b" * 64, "read_bytes_per_second": None,
        "detail": ""}  # fmt: skip


@pytest.mark.parametrize(
    "wanted",
    [
        WANTED,
        STORED,
        replace(WANTED, kind="pvc", uri="granite", folder=""),
        replace(WANTED, kind="oci", uri="r.local/m/granite:1", folder=""),
    ],
    ids=lambda wanted: wanted.kind,
)
def test_a_job_is_what_the_client_knows_as_one(wanted: WantedFiles) -> None:
    from kubernetes.client import V1Job

    manifest = job(wanted)
    pod = manifest["spec"]["template"]["spec"]

    assert V1Job.from_dict(manifest) is not None
    assert pod["nodeSelector"] == {"kubernetes.io/hostname": "gpu-1"}
    assert pod["restartPolicy"] == "Never"
    assert len(manifest["metadata"]["name"]) <= 63


def test_only_files_of_a_store_are_written_and_its_keys_are_a_reference() -> None:
    [counted] = job(WANTED)["spec"]["template"]["spec"]["containers"]
    [copied] = job(STORED)["spec"]["template"]["spec"]["containers"]

    assert counted["volumeMounts"][0]["readOnly"] is True
    assert "env" not in counted
    assert copied["volumeMounts"][0]["readOnly"] is False
    assert copied["command"][-4:] == ["--source", STORED.uri, "--endpoint", STORED.endpoint]
    assert {row["valueFrom"]["secretKeyRef"]["name"] for row in copied["env"]} == {"store-keys"}


def test_equal_wishes_have_one_name_and_others_have_others() -> None:
    names = {
        job_name(one)
        for one in (
            WANTED, replace(WANTED, sha256="c" * 64), replace(WANTED, hostname="gpu-2"),
            replace(WANTED, folder="/srv/b"), STORED,
        )
    }  # fmt: skip

    assert job_name(WANTED) == job_name(replace(WANTED, seconds=5.0))
    assert len(names) == 5


@pytest.mark.parametrize(
    ("found", "output", "sight", "detail"),
    [
        (None, "", "missing", ""),
        ({}, "", "checking", ""),
        ({"status": {"active": 1}}, "", "checking", ""),
        (DONE, json.dumps(SAID), "there", ""),
        (DONE, f"noise\n{json.dumps(SAID)}\n\n", "there", ""),
        (DONE, "", "failed", "no result"),
        (DONE, '{"sight": "there"}', "failed", "no result"),
        (DONE, json.dumps(SAID | {"sight": "perhaps"}), "failed", "no result"),
        (DONE, json.dumps(SAID | {"size_bytes": "5"}), "failed", "no result"),
        (DONE, "[1]", "failed", "no result"),
        ({"status": {"conditions": [{"type": "Failed", "status": "True", "message": "Limit"}]}},
         json.dumps(SAID | {"sight": "failed", "detail": "answered 403"}), "failed", "403"),
        ({"status": "odd"}, "", "checking", ""),
        ({"status": {"conditions": "odd"}}, "", "checking", ""),
    ],
)  # fmt: skip
def test_what_a_job_says_is_read_from_any_shape(
    found: Any, output: str, sight: str, detail: str
) -> None:
    told = seen(WANTED, found, output)

    assert told.sight == sight
    assert detail in told.detail


def test_files_that_come_over_a_network_are_being_fetched() -> None:
    assert seen(STORED, {"status": {}}, "").sight == "fetching"


class Jobs:
    """Runs the program of a Job's Pod on this machine, in the folder that it mounts."""

    def __init__(self, place: Place) -> None:
        self._cluster, self._engines = place.cluster, place.cluster.engine_for
        place.cluster.engine_for = self._start

    def _start(self, pod: dict[str, Any]) -> PodRun | None:
        [container] = pod["spec"]["containers"]
        if container["name"] != prefetching.CONTAINER:
            run: PodRun | None = self._engines(pod)
            return run
        folder = pod["spec"]["volumes"][0]["hostPath"]["path"]
        words = [folder if word == "/models" else word for word in container["command"]]
        done = subprocess.run(
            [sys.executable, *words[1:]], cwd=PROJECT, capture_output=True, text=True, check=False
        )
        meta = pod["metadata"]
        self._cluster.logs[meta["namespace"], meta["name"]] = done.stdout
        return PodRun()


@pytest.fixture
def store() -> Iterator[FakeStore]:
    server = FakeStore()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def pool_with_files(store: FakeStore, folder: Path, sha256: str) -> Pool:
    pool = make_container_pool()
    files = make_artefact(
        kind="s3", uri="s3://models/granite", endpoint=store.url, node_folder=str(folder),
        sha256=sha256,
    )  # fmt: skip
    services.set_pool_artefact(
        pool_id=pool.pk, artefact_id=files.pk, reason="test", actor=make_olga()
    )
    pool.refresh_from_db()
    return pool


def stated(folder: Path) -> str:
    """The checksum of what the store has."""
    (folder / "a b").mkdir(parents=True)
    (folder / "config.json").write_bytes(b"{}")
    (folder / "a b" / "w.bin").write_bytes(b"x" * 5000)
    return measure_folder(folder, most_seconds=9).sha256


@pytest.mark.processes
@pytest.mark.fake_only
@pytest.mark.django_db(transaction=True)
def test_files_are_fetched_from_the_store_inside_before_engines_start(
    place: Place, scripted_router: ScriptedRouter, store: FakeStore, tmp_path: Path, settings: Any
) -> None:
    settings.PREFETCH_IMAGE = "registry.example/consort:1"
    Jobs(place)
    sha256 = stated(tmp_path / "source")
    pool, node = pool_with_files(store, tmp_path / "node", sha256), place.node()

    plan = run_to_the_end(make_applying(pool, node))

    assert (plan.state, plan.outcome) == ("succeeded", "Waves done: 1.")
    assert (tmp_path / "node" / "config.json").read_bytes() == b"{}"
    assert Wave.objects.get().detail["files"] == {node.hostname: sha256}
    [made] = place.cluster.all("batch/v1", "Job", place.namespace)
    assert made["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "consort"
    assert {path.partition("?")[0].split("/")[1] for path in store.requests} == {"models"}
    [pod] = [row for row in place.pods() if "prefetch" not in row["metadata"]["name"]]
    assert any(
        volume.get("hostPath", {}).get("path") == str(tmp_path / "node")
        for volume in pod["spec"]["volumes"]
    )


@pytest.mark.processes
@pytest.mark.fake_only
@pytest.mark.django_db(transaction=True)
def test_fetched_files_with_another_checksum_stop_the_wave_and_start_no_engine(
    place: Place, scripted_router: ScriptedRouter, store: FakeStore, tmp_path: Path, settings: Any
) -> None:
    settings.PREFETCH_IMAGE = "registry.example/consort:1"
    Jobs(place)
    pool, node = pool_with_files(store, tmp_path / "node", "e" * 64), place.node()

    plan = run_to_the_end(make_applying(pool, node))

    assert plan.state == ChangePlan.State.ROLLED_BACK
    assert f"Files of {pool.artefact.slug} on {node.hostname}" in plan.outcome
    assert place.deployments() == []


@pytest.mark.fake_only
@pytest.mark.django_db
def test_somebody_elses_job_of_the_name_is_left_alone_and_without_an_image_none_is_made(
    place: Place,
) -> None:
    from inventory.services import clusters

    wanted = replace(WANTED, namespace=place.namespace)
    foreign = job(wanted)
    foreign["metadata"]["labels"] = {}
    now = datetime.now(UTC)
    place.cluster.controllers.stop()
    place.cluster.create(foreign)

    with clusters.open_client(place.row) as client:
        left = prefetching.bring(client, wanted, now=now)
        none = prefetching.bring(client, replace(wanted, image="", hostname="gpu-9"), now=now)

    assert (left.sight, "somebody else's" in left.detail) == ("failed", True)
    assert (none.sight, "PREFETCH_IMAGE is not set" in none.detail) == ("failed", True)
    assert len(place.cluster.all("batch/v1", "Job", place.namespace)) == 1
