"""When an engine counts as ready."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controlplane.serving.models import Endpoint, ProbeRecord
from controlplane.serving.services import holding, probes
from tests.controlplane.serving.boundary import Boundary
from tests.controlplane.serving.factories import make_pool
from tests.controlplane.serving.rows import make_endpoint

pytestmark = pytest.mark.django_db

COMPLETION = {
    "choices": [{"text": "ready"}],
    "usage": {
        "prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2},
    },
}  # fmt: skip


class Engine:
    """An engine that answers as it is told."""

    def __init__(self) -> None:
        self.models: tuple[int, Any] = (200, {"data": [{"id": "granite-4.1-8b"}]})
        self.completion: tuple[int, Any] = (200, COMPLETION)
        self.prompts: list[str] = []
        self.server = Boundary(self._respond)

    def _respond(self, _method: str, path: str, body: bytes, _: object) -> tuple[int, bytes]:
        if path == "/v1/models":
            status, answer = self.models
        else:
            self.prompts.append(json.loads(body)["prompt"])
            status, answer = self.completion
        return status, json.dumps(answer).encode()


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.server.close()


def probe(endpoint: Endpoint) -> Endpoint:
    hold = holding.take(endpoint.pool)
    assert hold is not None
    probes.probe_starting(endpoint.pool, hold)
    holding.release(hold)
    endpoint.refresh_from_db()
    return endpoint


def serving_condition(endpoint: Endpoint) -> dict[str, Any]:
    endpoint.workload.refresh_from_db()
    rows = [row for row in endpoint.workload.conditions if row["type"] == "Serving"]
    return dict(rows[0])


def test_an_engine_is_ready_once_a_real_completion_came_back_and_it_is_warm(
    engine: Engine,
) -> None:
    endpoint = probe(make_endpoint(url=engine.server.url, state="starting", role="decode"))

    assert (endpoint.state, endpoint.ready_at is not None) == ("ready", True)
    records = ProbeRecord.objects.order_by("purpose").values_list(
        "purpose", "prompt_tokens", "cached_tokens", "completion_tokens"
    )
    assert list(records) == [("ready", 3, 2, 4), ("warm-up", 3, 2, 4)]
    assert len(engine.prompts[1].split()) > 200
    assert serving_condition(endpoint)["reason"] == "CompletionCameBack"


def test_a_prefill_engine_needs_no_warm_up(engine: Engine) -> None:
    probe(make_endpoint(url=engine.server.url, state="starting", role="prefill"))

    assert ProbeRecord.objects.get().purpose == "ready"


@pytest.mark.parametrize(
    ("attribute", "value", "sentence", "state"),
    [
        (
            "models",
            (200, {"data": [{"id": "other"}]}),
            "lists other, not granite-4.1-8b",
            "starting",
        ),
        ("models", (503, {}), "/v1/models answered 503", "starting"),
        ("models", (200, {}), "KeyError", "starting"),
        ("completion", (500, {}), "answered a completion with 500", "warming"),
        ("completion", (200, {"choices": [{"text": ""}]}), "without any text", "warming"),
        ("completion", (200, {"choices": [{"text": "x"}]}), "KeyError", "starting"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_ready(
    engine: Engine, attribute: str, value: Any, sentence: str, state: str
) -> None:
    setattr(engine, attribute, value)

    endpoint = probe(make_endpoint(url=engine.server.url, state="starting"))

    assert endpoint.state == state
    condition = serving_condition(endpoint)
    assert (condition["status"], sentence in condition["message"]) == ("False", True)
    assert not ProbeRecord.objects.exists()


def test_an_engine_that_is_not_there_yet_is_no_error() -> None:
    endpoint = probe(make_endpoint(url="http://127.0.0.1:1", state="starting"))

    assert endpoint.state == "starting"


def test_a_ready_engine_is_looked_at_again_after_a_while(engine: Engine) -> None:
    pool = make_pool()
    long_ago = timezone.now() - timedelta(minutes=1)
    endpoint = make_endpoint(pool=pool, url=engine.server.url, observed_at=long_ago)
    hold = holding.take(pool)
    assert hold is not None

    probes.look_at_ready(pool, hold)
    endpoint.refresh_from_db()
    seen_at = endpoint.observed_at
    engine.models = (500, {})
    Endpoint.objects.update(observed_at=long_ago)
    probes.look_at_ready(pool, hold)

    assert seen_at is not None
    assert seen_at > long_ago
    assert serving_condition(endpoint)["reason"] == "NotAnswering"
