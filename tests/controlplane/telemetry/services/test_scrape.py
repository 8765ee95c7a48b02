"""Samples and counters follow the engines' pages over restarts and silence."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.telemetry import services
from controlplane.telemetry.counters import Counters
from controlplane.telemetry.models import EngineCounter, EngineSample
from controlplane.telemetry.sources import direct
from routing.core.signals import EngineSignals
from tests.controlplane.telemetry.rows import make_node, make_target

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 10, 0, 30, tzinfo=UTC)


class Engines:
    """Stands where the engines' pages are: outside of the process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = NOW
        self.pages: dict[str, tuple[int, int, float] | str] = {}
        monkeypatch.setattr(direct, "read_engines", self.read)

    def read(self, urls: dict[str, str], _engines: dict[str, str]) -> dict[str, direct.Reading]:
        self.now += timedelta(seconds=5)
        return {key: self._reading(self.pages[url]) for key, url in urls.items()}

    def _reading(self, page: tuple[int, int, float] | str) -> direct.Reading:
        if isinstance(page, str):
            return direct.Reading(at=self.now, error=page)
        prompt, output, started = page
        return direct.Reading(
            at=self.now,
            signals=EngineSignals(running=2, waiting=0, kv_usage=0.25, process_start=started),
            counters=Counters(
                prompt_tokens=prompt, prompt_computed_tokens=prompt, generation_tokens=output
            ),
        )


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Engines:
    return Engines(monkeypatch)


def test_counters_add_up_over_a_restart(engines: Engines) -> None:
    target = make_target()

    for page in [(100, 10, 1.0), (250, 20, 1.0), (40, 5, 90.0), (60, 5, 90.0)]:
        engines.pages[target.url] = page
        services.scrape_engines()

    counter = EngineCounter.objects.get(target=target)
    assert (counter.prompt_tokens_total, counter.generation_tokens_total) == (310, 25)
    assert counter.prompt_tokens_by_source["local_compute"] == 310
    assert counter.resets == 1
    samples = EngineSample.objects.filter(target=target)
    assert [sample.prompt_tokens for sample in samples] == [100, 150, 40, 20]
    assert [sample.seconds for sample in samples][1:] == [5.0, 5.0, 5.0]


def test_what_an_engine_counted_before_it_was_ours_does_not_count(engines: Engines) -> None:
    target = make_target(counts_from_start=False)

    for page in [(5000, 500, 1.0), (5100, 510, 1.0)]:
        engines.pages[target.url] = page
        services.scrape_engines()

    counter = EngineCounter.objects.get(target=target)
    assert (counter.prompt_tokens_total, counter.generation_tokens_total) == (100, 10)


def test_a_silent_engine_says_since_when_and_disturbs_no_other(engines: Engines) -> None:
    node = make_node()
    speaking, silent = make_target(node=node), make_target(node=node)
    engines.pages = {speaking.url: (1, 1, 1.0), silent.url: "No answer within 2 s."}

    counts = [services.scrape_engines(), services.scrape_engines()]

    silent.refresh_from_db()
    assert [(count.read, count.failed) for count in counts if count] == [(1, 1), (1, 1)]
    assert silent.failing_since == NOW + timedelta(seconds=5)
    assert silent.last_error == "No answer within 2 s."
    assert EngineSample.objects.filter(target=silent).count() == 0

    engines.pages[silent.url] = (1, 1, 1.0)
    services.scrape_engines()

    silent.refresh_from_db()
    assert silent.failing_since is None


def test_one_instance_can_be_read_before_it_is_stopped(engines: Engines) -> None:
    first, second = make_target(), make_target()
    engines.pages = {first.url: (10, 1, 1.0), second.url: (20, 2, 1.0)}

    count = services.scrape_engine(instance=second.instance)

    assert count.read == 1
    assert EngineCounter.objects.get().target == second


def test_the_number_of_statements_does_not_grow_with_the_engines(
    engines: Engines, django_assert_num_queries: object
) -> None:
    node = make_node()
    counts = []
    for _ in range(2):
        for _ in range(10):
            target = make_target(node=node)
            engines.pages[target.url] = (1, 1, 1.0)
        with django_assert_num_queries(8):  # type: ignore[operator]  # pytest-django's fixture
            counts.append(services.scrape_engines())

    assert [count.read for count in counts if count] == [10, 20]
