"""The live race in a browser, with its worker's loop in a thread of the test."""

import threading
from collections.abc import Callable, Iterator

import pytest
from django.db import connection
from playwright.sync_api import Page, expect

from controlplane.planning import services
from controlplane.planning.models import LiveRace
from tests.controlplane.console.scene import Scene

pytestmark = [
    pytest.mark.browser,
    pytest.mark.xdist_group("console"),
    pytest.mark.usefixtures("clean_cache"),
]


@pytest.fixture
def work(transactional_db: None) -> Iterator[Callable[[LiveRace], None]]:
    """Do the work of a race beside the test; what still runs at the end is stopped."""
    begun: list[tuple[threading.Thread, LiveRace]] = []

    def begin(race: LiveRace) -> None:
        def run() -> None:
            try:
                services.work_on_race(operation_id=race.operation_id)
            finally:
                connection.close()

        thread = threading.Thread(target=run)
        begun.append((thread, race))
        thread.start()

    yield begin
    for thread, race in begun:
        services.stop_race(actor=race.created_by)
        thread.join(timeout=30)
        assert not thread.is_alive()


def clock(page: Page) -> str:
    return page.locator("#race-clock").inner_text()


def test_a_race_starts_moves_follows_the_slider_by_key_and_stops(
    scene: Scene, page_of: Callable[..., Page], work: Callable[[LiveRace], None]
) -> None:
    page = page_of(scene.operator)
    page.goto("/race")
    page.get_by_role("button", name="Start the race").click()
    expect(page.locator("#race")).to_contain_text("The race waits for a worker.")
    race = LiveRace.objects.get(created_by=scene.operator)

    work(race)
    expect(page.locator("#race-clock")).to_contain_text("20 requests/s", timeout=60_000)
    before = clock(page)
    expect(page.locator("#race-clock")).not_to_have_text(before, timeout=60_000)
    page.locator("#rate").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#rate-now")).to_have_text("22")
    expect(page.locator("#race-clock")).to_contain_text("22 requests/s", timeout=60_000)
    expect(page.locator("#live")).to_have_text("The race runs at 22 requests/s.", timeout=60_000)
    # Figures go on moving while the slider has the focus, and leave it there.
    expect(page.locator("#rate")).to_be_focused()
    page.get_by_role("button", name="Stop").click()

    expect(page.locator("#race")).to_contain_text("The race was stopped.")
    expect(page.get_by_role("button", name="Start again")).to_be_visible()
    race.refresh_from_db()
    assert race.end == LiveRace.End.STOPPED
    assert race.rate_qps == 22


def test_a_race_that_ends_by_itself_says_so_without_a_reload(
    scene: Scene, page_of: Callable[..., Page]
) -> None:
    page = page_of(scene.operator)
    page.goto("/race")
    page.get_by_role("button", name="Start the race").click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()

    services.stop_race(actor=scene.operator)

    expect(page.locator("#race")).to_contain_text("The race was stopped.", timeout=30_000)
    expect(page.get_by_role("button", name="Start again")).to_be_visible()
