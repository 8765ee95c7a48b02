"""How one of several processes answers its supervisor."""

import json
from pathlib import Path

import msgspec
import pytest

from routing.core.document import encode_document
from routing.servers.app import Serving
from routing.servers.channel import Question
from routing.servers.decisions import DecisionRing
from routing.servers.documents import Directory
from routing.servers.questions import COMMIT, METRICS, PREPARE, Commitment, Questions
from routing.servers.reservations import Reservations
from routing.servers.shelf import document_sha256
from routing.servers.spool import UsageSpool
from tests.routing.servers.scripted import Engine, answers, document

DOCUMENT = document([Engine("a", answers, port=9001)])


@pytest.fixture
async def questions(tmp_path: Path) -> Questions:
    serving = Serving(
        name="r1",
        directory=Directory(None, router_name="r1/0"),
        spool=UsageSpool(tmp_path, router="r1", max_bytes=1000),
        decisions=DecisionRing(),
        drain_seconds=0.0,
        tokenizers_dir=tmp_path,
    )
    return Questions(serving.state, Reservations(serving.state))


def ask(questions: Questions, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    reply = questions.reply(Question(number=7, method=method, path=path, query="", body=body))
    assert reply.number == 7
    return reply.status, reply.body


def commitment(sha256: str) -> bytes:
    return msgspec.msgpack.encode(Commitment(sha256=sha256, drained=[("a", "a-9001")]))


async def test_a_document_is_served_after_both_steps(questions: Questions) -> None:
    prepared = ask(questions, "PUT", PREPARE, encode_document(DOCUMENT))
    between = json.loads(ask(questions, "GET", "/admin/state")[1])
    committed = ask(questions, "PUT", COMMIT, commitment(document_sha256(DOCUMENT)))
    after = json.loads(ask(questions, "GET", "/admin/state")[1])

    assert (prepared[0], committed[0]) == (200, 200)
    assert (between["documents"], len(after["documents"])) == ([], 1)
    assert after["pools"]["main"]["endpoints"][0]["state"] == "draining"


async def test_only_what_was_prepared_last_is_committed(questions: Questions) -> None:
    ask(questions, "PUT", PREPARE, encode_document(DOCUMENT))

    assert ask(questions, "PUT", COMMIT, commitment("0" * 64))[0] == 409
    assert ask(questions, "PUT", COMMIT, commitment(document_sha256(DOCUMENT)))[0] == 409


async def test_what_goes_wrong_is_an_answer(questions: Questions) -> None:
    assert ask(questions, "PUT", PREPARE, b"{")[0] == 500
    assert ask(questions, "GET", "/admin/usage-segments")[0] == 404
    assert ask(questions, "GET", "/nothing")[0] == 404


async def test_metrics_are_a_page(questions: Questions) -> None:
    status, page = ask(questions, "GET", METRICS)

    assert status == 200
    assert b"consort_requests_total" in page or b"# TYPE consort_requests" in page
