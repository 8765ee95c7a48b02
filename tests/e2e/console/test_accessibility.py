"""axe finds nothing on any page, in both themes; no page scrolls sideways at 320 pixels."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.controlplane.console.scene import Scene
from tests.controlplane.console.test_views_pages import MAIN_PAGES, address

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("console")]

_RULES = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    }
}


def paths_of(scene: Scene) -> list[str]:
    tabs = [
        f"{address(scene, 'node')}?tab={tab}" for tab in ("hardware", "roles", "cost", "history")
    ]
    empty = ["/fleet/nodes?q=nothing-like-this", "/search?q=gpu", "/problems/plan-own"]
    return [*(address(scene, page) for page in MAIN_PAGES), *tabs, *empty]


def violations(page: Page, path: str) -> list[str]:
    page.goto(path)
    found = Axe().run(page, options=_RULES).response["violations"]
    return [
        f"{path}: {rule['id']} at {node['target']}: {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("ko", "dark")])
def test_axe_finds_nothing_on_any_page(
    scene: Scene, page_of: Callable[..., Page], language: str, theme: str
) -> None:
    page = page_of(scene.operator, language=language, theme=theme)

    found = [line for path in paths_of(scene) for line in violations(page, path)]

    assert found == []


def test_axe_finds_nothing_on_the_login_and_on_denials(
    scene: Scene, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.tenant_user)

    found = violations(page, "/fleet/nodes") + violations(page, "/no-such-page")
    page.context.clear_cookies()
    found += violations(page, "/login")

    assert found == []


def test_no_page_scrolls_sideways_at_320_pixels(scene: Scene, page_of: Callable[..., Page]) -> None:
    page = page_of(scene.operator)
    page.set_viewport_size({"width": 320, "height": 900})

    wide = []
    for path in paths_of(scene):
        page.goto(path)
        if page.evaluate("document.documentElement.scrollWidth") > 320:
            wide.append(path)

    assert wide == []


def test_no_page_writes_to_the_console_or_breaks_the_content_policy(
    scene: Scene, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.operator)
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))

    for path in paths_of(scene):
        page.goto(path)

    assert said == []
