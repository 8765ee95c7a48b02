"""axe finds nothing on any page, in both themes; no page scrolls sideways at 320 pixels.

Loading a page and looking at it take longest, so each is loaded once for all that is asked of it.
"""

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.controlplane.console.scene import Scene
from tests.controlplane.console.test_views_pages import MAIN_PAGES, OWN_PAGES, address

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("console")]

_RULES = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
    "resultTypes": ["violations"],
}
_COLOURS = {
    "runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
    "resultTypes": ["violations"],
}
"""What another theme may break: it changes colours and nothing else."""
NARROW = 320
"""Pixels that a page must fit into without scrolling sideways (WCAG 1.4.10)."""


def paths_of(scene: Scene) -> list[str]:
    tabs = [
        f"{address(scene, 'node')}?tab={tab}" for tab in ("hardware", "roles", "cost", "history")
    ]
    empty = ["/fleet/nodes?q=nothing-like-this", "/search?q=gpu", "/problems/plan-own"]
    return [*(address(scene, page) for page in MAIN_PAGES), *tabs, *empty]


def violations(page: Page, options: dict[str, Any] | None = None) -> list[str]:
    found = Axe().run(page, options=options or _RULES).response["violations"]
    return [
        f"{page.url}: {rule['id']} at {node['target']}: {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"]
    ]


def violations_at(page: Page, *paths: str) -> list[str]:
    found = []
    for path in paths:
        page.goto(path)
        found += violations(page)
    return found


def put_on(page: Page, theme: str) -> None:
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)


def test_every_page_is_accessible_in_both_themes_and_narrow_and_says_nothing_to_the_console(
    scene: Scene, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.operator, theme="light")
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
    found, wide = [], []

    for path in paths_of(scene):
        page.goto(path)
        found += violations(page)
        put_on(page, "dark")
        found += violations(page, _COLOURS)
        page.set_viewport_size({"width": NARROW, "height": 900})
        if page.evaluate("document.documentElement.scrollWidth") > NARROW:
            wide.append(path)
        page.set_viewport_size({"width": 1280, "height": 900})

    assert (found, wide, said) == ([], [], [])


def test_axe_finds_nothing_on_pages_in_korean_and_a_theme_that_was_chosen(
    scene: Scene, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.operator, language="ko", theme="dark")

    found = violations_at(page, *(address(scene, name) for name in (*OWN_PAGES, "node", "change")))

    assert found == []


def test_axe_finds_nothing_on_the_login_and_on_denials(
    scene: Scene, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.tenant_user)

    found = violations_at(page, "/fleet/nodes", "/no-such-page")
    page.context.clear_cookies()
    found += violations_at(page, "/login")

    assert found == []
