"""A connection is tested from its page, and the page follows the test by itself."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings
from playwright.sync_api import Page, expect

from inventory import selectors, services
from inventory.models import Cluster
from inventory.services import clusters
from tests.controlplane.console.scene import Scene

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("console")]


@pytest.fixture
def lab(scene: Scene, cluster: Any, tmp_path: Path) -> Iterator[Cluster]:
    """The scene's cluster, silent up to now, with an API server behind it."""
    row = scene.kubernetes
    cluster.write_credentials(tmp_path / row.connection_reference)
    with override_settings(CLUSTER_CREDENTIALS_DIR=str(tmp_path)):
        yield row
        clusters.forget_client(row.pk)


def test_a_test_is_followed_to_its_end_without_loading_the_page_again(
    scene: Scene, lab: Cluster, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.operator)
    page.goto(f"/fleet/clusters/{lab.pk}")
    expect(page.get_by_text("The API server does not answer.")).to_be_visible()
    page.evaluate("window.loadedOnce = true")

    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_text("A worker asks the cluster.")).to_be_visible()
    running = selectors.running_test(lab)
    assert running is not None
    services.run_connection_test(operation_id=running.pk)

    expect(page.get_by_text("Everything that is needed is allowed.")).to_be_visible()
    expect(page.get_by_text("The API server does not answer.")).to_have_count(0)
    assert page.evaluate("window.loadedOnce") is True


def test_a_cluster_is_added_in_the_browser(
    scene: Scene, lab: Cluster, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.operator)
    page.goto("/fleet/clusters")
    page.get_by_role("link", name="Add cluster").click()
    page.get_by_label("Short name").fill("busan-1")
    page.get_by_label("Name", exact=True).fill("Busan 1")
    page.get_by_label("Site").select_option(label=lab.site.slug)
    page.get_by_label("Connection reference").fill("../etc")
    page.get_by_role("button", name="Add cluster").click()
    expect(page.get_by_role("alert")).to_contain_text("name of a folder")

    page.get_by_label("Connection reference").fill("busan-1")
    page.get_by_role("button", name="Add cluster").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("busan-1")
    expect(page.get_by_text("A worker asks the cluster.")).to_be_visible()
