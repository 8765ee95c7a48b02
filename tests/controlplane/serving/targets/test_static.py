"""The target `static`: it looks, and never touches."""

from collections.abc import Iterator

import pytest

from controlplane.serving.targets import target
from controlplane.serving.targets.base import WantedEngine
from tests.controlplane.serving.boundary import Boundary


class Engine:
    """An engine of somebody else."""

    def __init__(self) -> None:
        self.health, self.started, self.calls = 200, "1.5", list[str]()
        self.server = Boundary(self._respond)

    def _respond(self, method: str, path: str, *_: object) -> tuple[int, bytes]:
        self.calls.append(f"{method} {path}")
        if path == "/health":
            return self.health, b""
        return 200, f"process_start_time_seconds {self.started}\n".encode()

    def wanted(self) -> WantedEngine:
        return WantedEngine(name="gpu-1-0", generation=3, spec_hash="ab" * 16, url=self.server.url)


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.server.close()


def test_an_engine_that_answers_counts_as_what_is_wanted(engine: Engine) -> None:
    seen = target("static").observe([engine.wanted()])["gpu-1-0"]

    assert (seen.state, seen.spec_hash, seen.url) == ("running", "ab" * 16, engine.server.url)


def test_another_start_of_the_process_is_another_instance(engine: Engine) -> None:
    first = target("static").observe([engine.wanted()])["gpu-1-0"]
    again = target("static").observe([engine.wanted()])["gpu-1-0"]
    engine.started = "2.5"
    second = target("static").observe([engine.wanted()])["gpu-1-0"]

    assert first.instance == again.instance != second.instance


def test_an_engine_that_is_away_is_unknown_and_one_that_loads_is_starting(engine: Engine) -> None:
    engine.health = 503
    loading = target("static").observe([engine.wanted()])["gpu-1-0"]
    away = target("static").observe(
        [WantedEngine(name="x", generation=1, spec_hash="ab", url="http://127.0.0.1:1")]
    )["x"]

    assert (loading.state, away.state) == ("starting", "unknown")
    assert "answered 503" in loading.failure


def test_nothing_is_ever_sent_to_change_it(engine: Engine) -> None:
    static = target("static")
    static.apply(engine.wanted(), fencing_token=1)
    static.delete(engine.wanted(), fencing_token=1)
    static.observe([engine.wanted()])

    assert {call.split()[0] for call in engine.calls} == {"GET"}
    assert not static.capabilities().starts_engines
    assert "kept there" in static.logs(engine.wanted(), size=10)
