"""A browser on the console of a small site, served by the test itself."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from controlplane.tenancy.models import User
from tests.controlplane.console.scene import Scene, make_scene
from tests.factories import PASSWORD


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    """The whole small site, committed, so that the server's threads see it."""
    return make_scene()


@pytest.fixture
def page_of(live_server: LiveServer, browser: Browser) -> Iterator[Callable[..., Page]]:
    """Sign a person in with a language and a theme; gives a page whose addresses are relative."""
    contexts: list[Any] = []

    def sign_in(user: User, *, language: str = "en", theme: str = "light") -> Page:
        User.objects.filter(pk=user.pk).update(language=language, theme=theme)
        context = browser.new_context(
            base_url=live_server.url, viewport={"width": 1280, "height": 900}
        )
        contexts.append(context)
        page = context.new_page()
        page.goto("/login")
        page.fill("#id_username", user.username)
        page.fill("#id_password", PASSWORD)
        page.click("main button.primary")
        page.wait_for_selector("h1")
        return page

    yield sign_in
    for context in contexts:
        context.close()
