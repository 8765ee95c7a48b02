"""Explain, replay and test: on a live router, on stored records, and only for who may."""

import json
from typing import Any

import pytest

from controlplane.audit.models import AuditEntry
from controlplane.common.permissions import NotPermittedError
from controlplane.decisions import services
from controlplane.decisions.errors import (
    DocumentUnknownError,
    ReplayImpossibleError,
    RouterAwayError,
    RouterRefusedError,
)
from controlplane.serving.models import Pool, Router
from tests.controlplane.decisions.conftest import LiveRouter
from tests.controlplane.decisions.records import Desk, document, store_document
from tests.factories import make_ana, make_olga
from tests.routing.servers.scripted import SECRET

pytestmark = pytest.mark.django_db


def question(**changes: Any) -> services.RouteQuestion:
    pool = Pool.objects.get(slug="main")
    values: dict[str, Any] = {"pool": pool, "tenant": "tenant-ana", "prompt_tokens": 3000} | changes
    return services.RouteQuestion(**values)


def test_a_live_router_explains_a_request_of_sizes_in_the_language_asked_for(
    live: LiveRouter,
) -> None:
    told = services.explain_route(question=question(), actor=make_olga(), language="ko")

    assert told.router == "r1"
    assert told.record["request"]["prompt_tokens"] == 3000
    assert told.explanation.language == "ko"
    assert not live.stage.engines["a"].requests


@pytest.mark.lesson("T02")
def test_a_test_forces_an_endpoint_and_needs_the_permission(live: LiveRouter) -> None:
    told = services.explain_route(question=question(force=["b"]), actor=make_olga())

    assert told.record["destination"] == "b"
    with pytest.raises(NotPermittedError):
        services.explain_route(question=question(force=["b"]), actor=make_ana())


def test_a_question_that_the_router_refuses_says_why(live: LiveRouter) -> None:
    with pytest.raises(RouterRefusedError, match="does not remember"):
        services.explain_route(question=question(like="nobody"), actor=make_olga())


def test_without_a_router_in_reach_nobody_can_be_asked(live: LiveRouter) -> None:
    Router.objects.update(heard_at=None)

    with pytest.raises(RouterAwayError, match="main"):
        services.explain_route(question=question(), actor=make_olga())


def test_a_request_is_really_sent_and_its_text_is_nowhere(live: LiveRouter) -> None:
    sent = question(prompt="a very secret word", prompt_tokens=None, max_tokens=8)

    tested = services.send_test(question=sent, key=SECRET, actor=make_olga())

    assert tested.status == 200
    assert tested.text.startswith("from ")
    assert tested.explained is not None
    assert tested.explained.record["id"] == tested.decision_id
    entry = AuditEntry.objects.get(action="route.test")
    assert entry.after["prompt_characters"] == 18
    assert "secret" not in json.dumps(entry.after)
    assert SECRET not in json.dumps(entry.after)
    assert "secret" not in repr(sent) + repr(tested)


def test_a_wrong_key_is_told_as_the_router_told_it(live: LiveRouter) -> None:
    tested = services.send_test(question=question(prompt="hi"), key="wrong", actor=make_olga())

    assert tested.status == 401
    assert "not known here" in tested.text
    assert tested.explained is None


def test_a_record_is_replayed_under_the_document_it_was_made_with() -> None:
    store_document(document())
    line = Desk().decide()

    same = services.replay_decision(record=line)
    other = services.replay_decision(record=line, remove=[line["destination"]], language="ko")

    assert same.record["destination"] == line["destination"]
    assert same.record["candidates"] == line["candidates"]
    assert other.record["destination"] not in (line["destination"], None)
    assert other.explanation.language == "ko"


def test_a_replay_that_is_impossible_says_why() -> None:
    line = Desk().decide()

    with pytest.raises(DocumentUnknownError, match="no document of version 1"):
        services.replay_decision(record=line)
    store_document(document())
    with pytest.raises(ReplayImpossibleError, match="without its inputs"):
        services.replay_decision(record=line | {"inputs": None})
    with pytest.raises(ReplayImpossibleError, match="'nobody' is not in document"):
        services.replay_decision(record=line, force="nobody")
