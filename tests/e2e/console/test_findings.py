"""The page of findings in a browser: facts open, an answer is given, axe finds nothing."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from inventory.discovery.kubernetes import read_nodes
from inventory.models import Cluster, Finding
from inventory.services import recording
from tests.controlplane.console.scene import Scene
from tests.e2e.console.test_accessibility import NARROW, violations
from tests.inventory.discovery.cluster_objects import GPU, h100, node, resource_slice
from tests.inventory.factories import make_cluster, make_site
from tests.inventory.services.test_recording import make_h100

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("console")]
SHOTS = os.environ.get("CONSORT_SHOTS")
"""Folder for pictures, for people who want to look."""


@pytest.fixture
def busan(scene: Scene) -> Cluster:
    """A cluster of which everything can be said: planned, unknown, lost and odd nodes."""
    cluster = make_cluster(kind="kubernetes", slug="busan", site=make_site(slug="kr-busan"))
    for name in ("gpu-h100-1", "gpu-h100-2", "gpu-h100-3"):
        make_h100(name, cluster=cluster)
    nodes = [
        h100("gpu-h100-1", allocatable={GPU: "7"}),
        h100("gpu-h100-2", ready="Unknown"),
        h100("gpu-h100-3", labels={"nvidia.com/gpu.product": "NVIDIA-H100-NVL"}),
        h100("gpu-new-1"), h100("gpu-new-2"),
        node("gaudi-1", capacity={"habana.ai/gaudi": "8"}),
    ]  # fmt: skip
    found = read_nodes(nodes, [resource_slice("gpu-h100-3")], seen_at=timezone.now())
    recording.record_looks(cluster_id=cluster.pk, found=found)
    return cluster


def shoot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def test_facts_open_and_a_node_nobody_planned_is_accepted(
    scene: Scene, busan: Cluster, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.operator)
    page.goto("/fleet/findings?cluster=busan")
    page.locator("tr", has_text="gpu-new-1").locator("summary").click()
    expect(page.locator("tr", has_text="gpu-new-1").first).to_contain_text("extended resource")
    shoot(page, "findings-light")
    page.locator("tr", has_text="gpu-new-1").first.get_by_role("button").click()
    shoot(page, "findings-answer")
    page.locator("form.dialog:popover-open").get_by_label("Reason").fill("ours")
    page.locator("form.dialog:popover-open").get_by_role("button", name="Accept").click()

    expect(page.get_by_text("Finding about gpu-new-1: accepted")).to_be_visible()
    assert Finding.objects.get(hostname="gpu-new-1", kind="unknown-node").node is not None


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("ko", "dark")])
def test_axe_finds_nothing_and_the_page_fits_a_narrow_screen(
    scene: Scene, busan: Cluster, page_of: Callable[..., Page], language: str, theme: str
) -> None:
    page = page_of(scene.operator, language=language, theme=theme)
    page.goto("/fleet/findings?cluster=busan&kind=unknown-node")
    assert violations(page) == []
    shoot(page, f"findings-{language}-{theme}")
    page.get_by_role("button", name="2" if language == "en" else "건").first.click()
    shoot(page, f"findings-all-{language}-{theme}")
    hardware = f"/fleet/nodes/{busan.nodes.get(hostname='gpu-h100-3').pk}?tab=hardware"
    page.goto(hardware)
    assert violations(page) == []
    shoot(page, f"node-{language}-{theme}")

    page.set_viewport_size({"width": NARROW, "height": 800})
    for path in ("/fleet/findings?cluster=busan", hardware):
        page.goto(path)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= NARROW, path
