"""One demo for all end-to-end tests: starting it takes longer than any of them."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.e2e.stack import Demo

HERE = Path(__file__).parent
CHROMIUM_FLAGS = [
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--no-sandbox",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the demo begin first: they take longest, in one of the processes."""
    items.sort(key=lambda item: item.path.parent != HERE)


@pytest.fixture(scope="package")
def demo() -> Iterator[Demo]:
    """A running demo whose comparison of policies is done and which sends no traffic itself.

    It is stopped when tests of other folders follow: its processes would slow them down.
    """
    running = Demo()
    try:
        running.start()
        yield running
    finally:
        code = running.stop()
    assert code == 0, "the demo did not end well"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium of the system, for one file of tests.

    Playwright keeps an event loop in the thread; asynchronous tests of other files need it gone.
    """
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed; 'make test' installs it where it may.")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Django may be asked for rows although that loop runs: nothing waits in it.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        opened = playwright.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS)
        yield opened
        opened.close()
