"""Import: the demo site comes in whole; one wrong row and nothing does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from inventory import services
from inventory.discovery import file_import
from inventory.errors import ImportTooLargeError
from inventory.models import Accelerator, Cluster, ImportRun, Node, NodeType, Site
from tests.factories import make_ben, make_olga
from tests.inventory.factories import make_cluster, make_model, make_node, make_site

pytestmark = pytest.mark.django_db

DEMO = Path(__file__).parents[3] / "deploy" / "demo" / "site.csv"
HEADER = "site,country,cluster,cluster_kind,hostname,vendor,model,accelerators,serials"
GOOD = "kr-1,KR,seoul-1,static,gpu-1,amd,amd-mi325x,2,A;B"


def run_import(*rows: str, dry_run: bool = False, **changes: Any) -> ImportRun:
    content = "\n".join([HEADER, *rows]).encode()
    ask = {"content": content, "dry_run": dry_run, "actor": make_olga()} | changes
    return services.import_file(**ask)


def row_counts() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Site, Cluster, NodeType, Node, Accelerator))


def test_the_demo_site_comes_in_whole() -> None:
    services.load_catalogue()

    run = services.import_file(
        content=DEMO.read_bytes(), file_name="site.csv", dry_run=False, actor=make_olga()
    )

    assert (run.state, run.errors, run.rows) == ("applied", [], 7)
    assert run.created == {"sites": 1, "clusters": 1, "nodes": 7, "accelerators": 36}
    counts = {node.hostname: node.accelerators.count() for node in Node.objects.all()}
    assert counts == {
        "gpu-kr-01": 2, "gpu-kr-02": 2, "gpu-kr-07": 8, "gpu-kr-11": 8, "npu-kr-21": 8,
        "npu-kr-31": 4, "npu-kr-41": 4,
    }  # fmt: skip
    assert Node.objects.values("vendor").distinct().count() == 6
    site = Site.objects.get()
    assert (site.slug, site.currency, site.figures["pue"]["confidence"]) == (
        "KR-SEO-1", "USD", "claimed",
    )  # fmt: skip


def test_the_same_file_again_changes_nothing() -> None:
    make_model()
    run_import(GOOD)
    before = row_counts()

    run = run_import(GOOD)

    assert (run.state, run.created) == ("applied", {"unchanged": 1})
    assert row_counts() == before


def test_a_dry_run_tells_what_would_come_and_stores_nothing() -> None:
    make_model()
    before = row_counts()

    run = run_import(GOOD, dry_run=True)

    assert (run.state, run.created) == (
        "checked", {"sites": 1, "clusters": 1, "nodes": 1, "accelerators": 2},
    )  # fmt: skip
    assert row_counts() == before


def existing() -> None:
    """A site, a cluster, a node with 2 amd-mi325x and the serials gpu-1-0 and gpu-1-1."""
    cluster = make_cluster(slug="seoul-1", site=make_site(slug="kr-1"))
    make_model(slug="nvidia-l4", vendor="nvidia", name="L4")
    make_node(hostname="gpu-1", cluster=cluster)


@pytest.mark.parametrize(
    ("row", "column", "code", "part"),
    [
        pytest.param(
            "kr-1,,seoul-1,,gpu-9,acme,amd-mi325x,1,", "vendor", "unknown-vendor",
            "Known: amd, ", id="unknown-vendor",
        ),
        pytest.param(
            "kr-1,,seoul-1,,gpu-9,amd,amd-mi999,1,", "model", "unknown-model",
            "Models of amd: amd-mi325x", id="unknown-model",
        ),
        pytest.param(
            "kr-1,,seoul-1,,gpu-9,amd,nvidia-l4,1,", "model", "model-of-other-vendor",
            "of nvidia, not of amd", id="model-of-other-vendor",
        ),
        pytest.param(
            "kr-9,,seoul-1,,gpu-9,amd,amd-mi325x,1,", "site", "unknown-site", "one of: kr-1",
            id="unknown-site",
        ),
        pytest.param(
            "kr-1,,seoul-9,,gpu-9,amd,amd-mi325x,1,", "cluster", "unknown-cluster",
            "one of: seoul-1", id="unknown-cluster",
        ),
        pytest.param(
            "kr-9,KR,seoul-1,,gpu-9,amd,amd-mi325x,1,", "cluster", "cluster-of-other-site",
            "at the site kr-1", id="cluster-of-other-site",
        ),
        pytest.param(
            "kr-1,,seoul-1,,gpu-1,nvidia,nvidia-l4,2,", "vendor", "other-vendor-exists",
            "gpu-1 exists with amd", id="node-with-two-vendors",
        ),
        pytest.param(
            "kr-1,,seoul-1,,GPU-1,amd,amd-mi325x,3,", "hostname", "node-differs",
            "an import only adds", id="node-differs",
        ),
        pytest.param(
            "kr-1,,seoul-1,,gpu-9,amd,amd-mi325x,1,gpu-1-1", "serials", "serial-in-use",
            "belongs to gpu-1/1 already", id="serial-in-use",
        ),
        pytest.param(
            "kr-1,,seoul-1,,gpu-9,amd,amd-mi325x,0,", "accelerators", "no-accelerators",
            "Give 1 to 64", id="no-accelerators",
        ),
    ],
)  # fmt: skip
def test_one_wrong_row_refuses_the_file_whole(row: str, column: str, code: str, part: str) -> None:
    existing()
    before = row_counts()

    run = run_import("kr-1,,seoul-1,,gpu-8,amd,amd-mi325x,2,", row)

    (error,) = run.errors
    assert (run.state, run.created, run.error_count) == ("refused", {}, 1)
    assert (error["row"], error["column"], error["code"]) == (3, column, code)
    assert part in error["detail"]
    assert row_counts() == before


def test_every_wrong_row_is_named_not_only_the_first() -> None:
    existing()

    run = run_import(
        "kr-1,,seoul-1,,gpu-8,acme,amd-mi325x,2,",
        "kr-1,,seoul-1,,gpu-9,amd,amd-mi325x,0,",
        "kr-9,,seoul-1,,gpu-7,amd,amd-mi325x,1,",
    )

    assert [(error["row"], error["code"]) for error in run.errors] == [
        (2, "unknown-vendor"), (3, "no-accelerators"), (4, "unknown-site"),
    ]  # fmt: skip


def test_a_refused_file_is_kept_as_a_run_and_recorded() -> None:
    run_import("kr-1")

    run = ImportRun.objects.get()
    assert run.state == "refused"
    assert AuditEntry.objects.get().action == "import.refused"


def test_a_file_over_the_limit_is_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services.importing, "MOST_BYTES", 100)

    with pytest.raises(ImportTooLargeError, match="101 bytes; 100 are allowed"):
        run_import(content=b"x" * 101)


def test_the_limit_is_32_mebibytes() -> None:
    assert file_import.MOST_BYTES == 33_554_432


def test_ben_imports_nothing() -> None:
    with pytest.raises(NotPermittedError):
        run_import(GOOD, actor=make_ben())


@pytest.mark.django_db(transaction=True)
def test_of_three_equal_files_at_once_the_node_comes_once(
    at_the_same_time: Callable[..., list[str]],
) -> None:
    make_model()
    content = "\n".join([HEADER, GOOD]).encode()

    outcomes = at_the_same_time(
        3, services.import_file, content=content, dry_run=False, actor=make_olga()
    )

    assert outcomes == ["ImportRun"] * 3
    assert (Node.objects.count(), Accelerator.objects.count()) == (1, 2)
    assert ImportRun.objects.filter(state="applied", created__has_key="nodes").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_six_files_that_add_to_one_cluster_the_node_comes_once(
    at_the_same_time: Callable[..., list[str]],
) -> None:
    make_model()
    make_cluster(slug="seoul-1", site=make_site(slug="kr-1"))
    content = "\n".join([HEADER, "kr-1,,seoul-1,,gpu-1,amd,amd-mi325x,2,A;B"]).encode()

    at_the_same_time(6, services.import_file, content=content, dry_run=False, actor=make_olga())

    codes = {error["code"] for run in ImportRun.objects.all() for error in run.errors}
    assert codes <= {"taken-meanwhile", "serial-in-use"}
    assert (ImportRun.objects.count(), Node.objects.count()) == (6, 1)
    assert ImportRun.objects.filter(state="applied", created__has_key="nodes").count() == 1
