"""Explain, replay and test by REST."""

import json
from typing import Any

import psycopg
import pytest
from django.db import connection

from controlplane.decisions import services
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.controlplane.decisions.conftest import LiveRouter
from tests.controlplane.decisions.records import Desk, document, store_document
from tests.factories import make_ana, make_api_client, make_olga
from tests.routing.servers.scripted import SECRET, Engine, answers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]
ROUTE = {"pool": "main", "tenant": "tenant-ana", "prompt_tokens": 3000}


def post(path: str, body: dict[str, Any], user: Any = None, **headers: str) -> Any:
    client = make_api_client(user or make_olga())
    return client.post(f"/api/v1/routing/{path}", body, format="json", headers=headers)


def test_explain_needs_no_idempotency_key_because_it_changes_nothing(live: LiveRouter) -> None:
    answer = post("explain", ROUTE | {"language": "ko", "avoid": ["a"]})

    assert answer.status_code == 200, answer.content
    assert answer.json()["record"]["destination"] == "b"
    assert answer.json()["explanation"]["language"] == "ko"


def test_a_request_that_is_sent_needs_a_key_and_leaves_no_text(live: LiveRouter) -> None:
    body = {"pool": "main", "tenant": "t", "prompt": "a very secret word", "key": SECRET}

    without = post("test", body)
    sent = post("test", body, **{"Idempotency-Key": "test-route-1"})

    assert without.status_code == 400
    assert sent.status_code == 200, sent.content
    assert sent.json()["explained"]["record"]["id"] == sent.json()["decision_id"]
    assert "secret" not in json.dumps(sent.json()["explained"])


def test_what_a_model_said_is_not_kept_for_a_repeated_call(live: LiveRouter) -> None:
    body = {"pool": "main", "tenant": "t", "prompt": "Say hello.", "key": SECRET}
    olga = make_olga()

    sent = post("test", body, olga, **{"Idempotency-Key": "test-route-1"})
    again = post("test", body, olga, **{"Idempotency-Key": "test-route-1"})

    assert sent.json()["text"]
    assert again.json() == sent.json() | {"text": ""}


@pytest.mark.django_db(transaction=True)
def test_no_transaction_waits_while_the_engine_answers(live: LiveRouter) -> None:
    ours, parameters = connection.connection.info.backend_pid, connection.get_connection_params()
    states: list[str] = []

    async def looks(engine: Engine, received: HttpRequest, client: Connection) -> None:
        with psycopg.connect(**parameters) as other:
            row = other.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", [ours])
            states.extend(row.fetchone() or ())
        await answers(engine, received, client)

    for engine in live.stage.engines.values():
        engine.script = looks
    body = {"pool": "main", "tenant": "t", "prompt": "Say hello.", "key": SECRET}

    answer = post("test", body, **{"Idempotency-Key": "test-route-1"})

    assert answer.json()["status"] == 200, answer.content
    assert states == ["idle"]


def test_a_key_of_any_letters_is_refused_by_the_router(live: LiveRouter) -> None:
    body = {"pool": "main", "tenant": "t", "prompt": "Say hello.", "key": "열쇠"}

    answer = post("test", body, **{"Idempotency-Key": "test-route-1"})

    assert (answer.status_code, answer.json()["status"]) == (200, 401)


@pytest.mark.parametrize("version", ["x", -1, 0, 2**53, [1], None, 1.5])
def test_a_record_of_no_version_is_refused(version: Any) -> None:
    answer = post("replay", {"record": Desk().decide() | {"document_version": version}})

    assert (answer.status_code, answer.json()["code"]) == (422, "replay-impossible")


def test_a_stored_decision_is_replayed_by_its_id() -> None:
    store_document(document())
    desk = Desk()
    line = desk.decide()
    services.take_in(desk.page(), router="router-a")

    other = post("replay", {"decision": line["id"], "policy": "random"})
    forced = post("replay", {"record": line, "force": "gpu-kr-01"})
    unknown = post("replay", {"decision": "nobody"})

    assert other.json()["record"]["policy"] == "random"
    assert forced.json()["record"]["destination"] == "gpu-kr-01"
    assert unknown.status_code == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("explain", {"pool": "main", "tenant": "t"}),
        ("explain", ROUTE | {"pool": "other"}),
        ("explain", ROUTE | {"policy": "coin"}),
        ("explain", ROUTE | {"promt": "x"}),
        ("replay", {}),
        ("replay", {"decision": "x", "record": {"id": "x"}}),
    ],
)
def test_questions_that_make_no_sense_are_refused_with_pointers(
    live: LiveRouter, path: str, body: dict[str, Any]
) -> None:
    answer = post(path, body)

    assert answer.status_code == 422, answer.content
    assert answer.json()["errors"]


@pytest.mark.parametrize("path", ["explain", "test", "replay"])
def test_people_of_a_tenant_may_not_ask(live: LiveRouter, path: str) -> None:
    body = ROUTE | {"prompt": "x", "key": "x"} if path == "test" else ROUTE
    if path == "replay":
        body = {"record": Desk().decide()}

    answer = post(path, body, make_ana(), **{"Idempotency-Key": "key-of-ana"})

    assert answer.status_code == 403
