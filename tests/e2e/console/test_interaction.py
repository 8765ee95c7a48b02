"""Keys, theme, polling and the way of a change plan, as people do them."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from controlplane.tenancy.models import User
from tests.controlplane.console.scene import Scene

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("console")]


def test_keys_go_to_pages_and_to_the_search(scene: Scene, page_of: Callable[..., Page]) -> None:
    page = page_of(scene.operator)

    page.keyboard.press("g")
    page.keyboard.press("n")
    page.wait_for_url("**/fleet/nodes")
    page.keyboard.press("/")

    expect(page.locator("#q")).to_be_focused()


def test_the_theme_changes_at_once_and_is_kept(scene: Scene, page_of: Callable[..., Page]) -> None:
    page = page_of(scene.operator, theme="light")

    with page.expect_response("**/preferences"):
        page.click("[data-theme-switch]")

    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert User.objects.get(pk=scene.operator.pk).theme == "dark"


def test_the_language_changes_and_is_kept(scene: Scene, page_of: Callable[..., Page]) -> None:
    page = page_of(scene.operator)

    page.click("button[name=language][value=ko]")
    page.wait_for_selector("html[lang=ko]")

    assert page.locator("h1").inner_text() == "개요"


def test_a_plan_page_shows_progress_without_a_reload_and_says_it(
    scene: Scene, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.operator)
    page.goto(f"/serving/changes/{scene.applying.pk}")
    expect(page.locator("#change")).to_contain_text("37 requests left")

    scene.applying.waves.filter(position=2).update(detail={"unfinished": 3})
    scene.applying.waves.get(position=2).save()

    expect(page.locator("#change")).to_contain_text("3 requests left", timeout=10_000)
    expect(page.locator("#live")).to_contain_text("CP-0045", timeout=10_000)


def test_a_note_that_was_begun_survives_the_progress_around_it(
    scene: Scene, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.operator)
    page.goto(f"/serving/changes/{scene.applying.pk}")
    page.fill("#note", "half a sentence")
    page.locator("#note").blur()

    scene.applying.waves.filter(position=2).update(detail={"unfinished": 2})
    scene.applying.waves.get(position=2).save()

    expect(page.locator("#change")).to_contain_text("2 requests left", timeout=10_000)
    expect(page.locator("#note")).to_have_value("half a sentence")


def test_an_open_table_of_a_chart_stays_open_and_keyboard_focus_is_not_taken(
    scene: Scene, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.operator)
    page.clock.install()
    page.goto("/")
    page.click("#data-slo summary")
    with page.expect_response(lambda response: response.url.endswith("/")):
        page.clock.run_for(11_000)

    expect(page.locator("#fresh")).to_be_visible()
    expect(page.locator("#data-slo")).to_have_attribute("open", "")

    page.locator("main a").first.focus()
    page.keyboard.press("Tab")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(30_000)

    assert asked == []


def test_a_paused_page_does_not_ask(scene: Scene, page_of: Callable[..., Page]) -> None:
    page = page_of(scene.operator)
    page.clock.install()
    page.goto("/serving/routers")
    page.click("[data-pause]")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    page.clock.run_for(20_000)

    assert asked == []
    assert page.locator("[data-pause]").inner_text() == "Resume refresh"


def test_cordon_asks_for_a_reason_in_a_dialog_and_comes_back(
    scene: Scene, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.operator)
    page.goto("/fleet/nodes")
    row = page.locator(f"#node-{scene.nodes[4].pk}")

    row.get_by_role("button", name="Cordon").first.click()
    page.locator(":popover-open input[name=reason]").fill("fan noise")
    page.locator(":popover-open button.primary").click()

    expect(row).to_contain_text("cordoned")
    scene.nodes[4].refresh_from_db()
    assert scene.nodes[4].state == "cordoned"


def test_the_pages_work_without_a_script(scene: Scene, page_of: Callable[..., Page]) -> None:
    signed_in = page_of(scene.operator)
    browser = signed_in.context.browser
    assert browser is not None
    plain = browser.new_context(
        java_script_enabled=False, storage_state=signed_in.context.storage_state()
    )
    page = plain.new_page()
    base = signed_in.url.split("/", 3)[:3]

    page.goto("/".join([*base, "fleet", "nodes"]) + "?vendor=amd")
    names = page.locator("tbody th a").all_inner_texts()
    page.click("button[name=theme]")

    assert names == ["gpu-07"]
    assert page.locator("html").get_attribute("data-theme") == "dark"
    plain.close()
