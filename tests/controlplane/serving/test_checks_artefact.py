"""The check of a plan's model files: air-gapped sites, wrong files, files that are not there."""

from typing import Any

import pytest

from controlplane.serving import deployments, services
from controlplane.serving.checks import artefact as check_of
from controlplane.serving.models import ArtefactPresence, Pool
from tests.controlplane.serving.factories import (
    accelerators_of,
    make_artefact,
    make_draft,
    make_fleet_node,
    make_pool,
)
from tests.factories import make_olga
from tests.inventory.factories import make_cluster, make_site

pytestmark = pytest.mark.django_db

STORE = {"kind": "s3", "uri": "s3://models/granite", "endpoint": "https://s3.example.internal",
         "node_folder": "/srv/granite"}  # fmt: skip


def closed_node(*inside: str, kind: str = "local") -> Any:
    site = make_site(air_gapped=True, internal_hosts=list(inside))
    return make_fleet_node(accelerators=1, cluster=make_cluster(site=site, kind=kind))


def pool_with(files: Any, **fields: Any) -> Pool:
    pool = make_pool(**fields)
    services.set_pool_artefact(
        pool_id=pool.pk, artefact_id=files.pk, reason="test", actor=make_olga()
    )
    pool.refresh_from_db()
    return pool


def judged(pool: Pool, node: Any, role: str = "both") -> Any:
    return check_of.check(make_draft(pool, node, role=role))


def test_a_pool_without_files_passes_as_before() -> None:
    assert judged(make_pool(engine="vllm"), make_fleet_node()).verdict == "pass"
    assert judged(make_pool(), closed_node()).verdict == "pass"


def test_real_engines_without_files_are_blocked_on_an_air_gapped_site() -> None:
    result = judged(make_pool(engine="vllm"), closed_node())

    assert result.verdict == "block"
    assert "would ask a public hub" in result.sentence


def test_a_source_outside_is_blocked_on_an_air_gapped_site_only() -> None:
    pool = pool_with(make_artefact(**STORE))

    outside = judged(pool, closed_node("s3.other.internal"))
    inside = judged(pool, closed_node(".example.internal"))
    open_site = judged(pool, make_fleet_node(accelerators=1))

    assert outside.verdict == "block"
    assert "comes from s3.example.internal" in outside.sentence
    assert {inside.verdict, open_site.verdict} == {"warn"}


def test_a_folder_on_the_nodes_is_inside_everywhere() -> None:
    assert judged(pool_with(make_artefact()), closed_node()).verdict == "warn"


def test_wrong_files_block_missing_ones_warn_and_present_ones_pass() -> None:
    pool, node = pool_with(make_artefact(sha256="a" * 64)), make_fleet_node(accelerators=1)

    nothing_seen = judged(pool, node)
    row = ArtefactPresence.objects.create(artefact=pool.artefact, node=node, state="wrong")
    wrong = judged(pool, node)
    ArtefactPresence.objects.filter(pk=row.pk).update(state="present")
    present = judged(pool, node)

    assert (nothing_seen.verdict, wrong.verdict, present.verdict) == ("warn", "block", "pass")
    assert node.hostname in wrong.sentence
    assert "were not seen" in nothing_seen.sentence


def test_a_cluster_fetches_what_is_not_there() -> None:
    node = make_fleet_node(accelerators=1, kind="kubernetes")

    result = judged(pool_with(make_artefact(**STORE), containers={}), node)

    assert "are fetched before the drain" in result.sentence
    assert "Nobody stated the SHA-256" in result.sentence


def test_releasing_needs_no_files() -> None:
    node = closed_node()

    assert judged(make_pool(engine="vllm"), node, role="").sentence == "The plan starts no engine."


def test_an_engine_starts_from_the_files_and_asks_nobody_on_an_air_gapped_site() -> None:
    pool = pool_with(make_artefact(uri="/srv/models/granite"), engine="vllm")
    [accelerator] = accelerators_of(closed_node())
    [open_one] = accelerators_of(make_fleet_node(accelerators=1))

    closed = deployments.desired_spec(pool, accelerator, role="both")
    usual = deployments.desired_spec(pool, open_one, role="both")

    assert closed["argv"][:3] == ["vllm", "serve", "/srv/models/granite"]
    assert closed["env"]["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in usual["env"]
    assert closed["spec_hash"] != usual["spec_hash"]


@pytest.mark.parametrize(
    ("fields", "volume"),
    [
        ({}, {"hostPath": {"path": "/srv/models/granite", "type": "Directory"}}),
        (STORE, {"hostPath": {"path": "/srv/granite", "type": "Directory"}}),
        ({"kind": "pvc", "uri": "granite"}, {"persistentVolumeClaim": {"claimName": "granite"}}),
        ({"kind": "oci", "uri": "r.local/m/x:1"}, {"image": {"reference": "r.local/m/x:1"}}),
    ],
)  # fmt: skip
def test_a_pod_mounts_the_files_of_its_pool(fields: Any, volume: Any) -> None:
    containers = {"namespace": "engines", "images": {"amd": "r.local/vllm:1"}}
    pool = pool_with(make_artefact(**fields), engine="vllm", containers=containers)
    [accelerator] = accelerators_of(make_fleet_node(accelerators=1, kind="kubernetes"))

    spec = deployments.desired_spec(pool, accelerator, role="both")

    pod = spec["manifests"][-1]["spec"]["template"]["spec"]
    mounts = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    found = next(row for row in pod["volumes"] if row["name"] == mounts["/models"])
    [(kind, content)] = volume.items()
    assert content.items() <= found[kind].items()
    assert spec["argv"][2] == "/models"
