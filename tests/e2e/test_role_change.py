"""A role change as two people do it in the browser, while clients go on asking."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.stack import MODEL, Demo, Person, until
from tests.e2e.traffic import Traffic

pytestmark = [
    pytest.mark.processes,
    pytest.mark.browser,
    pytest.mark.xdist_group("demo"),
]
NODE = "gpu-kr-01"
WAIT_MS = 180_000


def test_prefill_becomes_decode_and_goes_back_without_a_failed_request(
    demo: Demo, browser: Browser, tmp_path: Path
) -> None:
    olga, andrea = _signed_in(demo, browser, "operator"), _signed_in(demo, browser, "approver")
    engines = _engines(demo)
    version = _document_version(demo)

    with Traffic(demo, tmp_path / "there.json") as there:
        page = _propose(demo, olga)
        _approve(andrea, page.url)
        _apply(page)
        expect(page.locator("#change-state")).to_contain_text("succeeded", timeout=WAIT_MS)
    after = _engines(demo)

    assert there.result["failed"] == 0
    assert there.result["ok"] > 10
    assert {engine["role"] for engine in after.values()} == {"decode"}
    assert {engine["pid"] for engine in after.values()}.isdisjoint(
        engine["pid"] for engine in engines.values()
    )
    _assert_old_processes_are_gone(engines)
    _assert_each_lists_the_model_and_completes(after)
    assert _acknowledged(demo) == {"router-a", "router-b"}
    assert _document_version(demo) > version

    with Traffic(demo, tmp_path / "back.json") as back:
        page.locator("textarea[name=note]").fill("Test: the old roles were better.")
        page.get_by_role("button", name="Roll back").click()
        expect(page.locator("#change-state")).to_contain_text("rolled back", timeout=WAIT_MS)

    assert back.result["failed"] == 0
    assert {engine["role"] for engine in _engines(demo).values()} == {"prefill"}


def test_the_author_cannot_approve(demo: Demo, browser: Browser) -> None:
    olga = _signed_in(demo, browser, "operator")
    page = _propose(demo, olga)

    expect(page.get_by_role("button", name="Approve")).to_be_disabled()
    expect(page.locator("#why-approve")).to_contain_text("another person")

    page.get_by_role("button", name="Cancel").first.click()


def _signed_in(demo: Demo, browser: Browser, username: str) -> BrowserContext:
    context = browser.new_context(base_url=demo.url, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto("/login")
    page.locator("#id_username").fill(username)
    page.locator("#id_password").fill(demo.password(username))
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_contain_text("Overview")
    return context


def _propose(demo: Demo, context: BrowserContext) -> Page:
    """Select the node, ask for decode, propose; the plan's page."""
    page = context.pages[0]
    page.goto("/serving/changes/add")
    page.locator("tr", has=page.get_by_text(NODE, exact=True)).locator("input[name=node]").check()
    pool = page.locator("select[name=pool] option", has_text=re.compile("granite", re.I))
    page.locator("select[name=pool]").select_option(pool.get_attribute("value"))
    page.locator("[name=role]").select_option("decode")
    page.locator("[name=per_wave]").fill("1")
    page.locator("[name=soak_seconds]").fill("2")
    page.locator("[name=reason]").fill("Test: decode is the bottleneck.")
    page.get_by_role("button", name="Make plan").click()
    page.get_by_role("button", name="Propose").click()
    expect(page.locator("#change-state")).to_contain_text("proposed")
    return page


def _approve(context: BrowserContext, address: str) -> None:
    page = context.pages[0]
    page.goto(address)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#change-state")).to_contain_text("approved")


def _apply(page: Page) -> None:
    page.reload()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#change-state")).to_contain_text(re.compile("applying|succeeded"))


def _engines(demo: Demo) -> dict[str, dict[str, Any]]:
    """Ready endpoints of the node by workload, with the process behind each."""
    operator: Person = demo.person("operator")
    items = operator.get("/endpoints", pool="granite-chat", state="ready", page_size="1000")[
        "items"
    ]
    return {item["name"]: item for item in items if item["node"] == NODE}


def _assert_old_processes_are_gone(engines: dict[str, dict[str, Any]]) -> None:
    for engine in engines.values():
        assert not Path(f"/proc/{engine['pid']}").exists(), engine["name"]


def _assert_each_lists_the_model_and_completes(engines: dict[str, dict[str, Any]]) -> None:
    for engine in engines.values():
        models = httpx.get(f"{engine['url']}/v1/models", timeout=10).json()
        answer = httpx.post(
            f"{engine['url']}/v1/completions", timeout=30,
            json={"model": MODEL, "prompt": "Hello", "max_tokens": 2},
        )  # fmt: skip
        assert MODEL in [model["id"] for model in models["data"]]
        assert answer.status_code == 200


def _acknowledged(demo: Demo) -> set[str]:
    """Routers that have the newest document."""
    newest = _document_version(demo)
    return {
        name
        for name in demo.routers
        if until(
            lambda name=name: _version_at(demo, name) >= newest, seconds=20, what=f"{name} in sync"
        )
    }


def _document_version(demo: Demo) -> int:
    documents = demo.person("operator").get("/pool-documents", pool="granite-chat")["items"]
    return max(document["version"] for document in documents)


def _version_at(demo: Demo, router: str) -> int:
    documents = demo.router_state(router)["documents"]
    return max(document["version"] for document in documents)
