"""The account of an attempt: whose token counts are written, and only once."""

from pathlib import Path
from typing import Any

import pytest

from routing.core.document import encode_document
from routing.core.usage import UsageEvent
from routing.engines.base import TokenUsage
from routing.servers import attempt as attempts
from routing.servers import deciding
from routing.servers.app import Router, RouterOptions
from routing.servers.attempt import Attempt, Ending
from routing.servers.calls import read_call
from routing.servers.http_parts import HttpRequest
from routing.servers.state import RouterState
from tests.routing.servers.scripted import (
    ADMIN_TOKEN,
    SECRET,
    Engine,
    answers,
    document,
)

BODY = b'{"model":"granite-4.1-8b","prompt":"%b"}' % (b"x" * 400)


class Book:
    """A router whose usage events stay here."""

    def __init__(self, folder: Path) -> None:
        options = RouterOptions(name="r1", state_dir=folder, admin_token=ADMIN_TOKEN.encode())
        self.state: RouterState = Router(options).state
        self.state.directory.apply(encode_document(document([Engine("a", answers, port=8000)])))
        self.events: list[UsageEvent] = []
        self.state.spool.append = self.events.append  # type: ignore[method-assign]

    def begin(self) -> Attempt:
        request = HttpRequest(
            method="POST",
            path="/v1/completions",
            query="",
            headers={b"authorization": f"Bearer {SECRET}".encode()},
            body=BODY,
        )
        call = read_call(self.state, request, path=request.path, body=BODY)
        return attempts.begin(self.state, call, deciding.decide(self.state, call), number=1)

    @property
    def leases_open(self) -> int:
        return self.state.directory.pools["main"].router.leases_open


@pytest.fixture
async def book(tmp_path: Path) -> Book:
    return Book(tmp_path)


def ending(**changes: Any) -> Ending:
    return Ending(**({"outcome": "ok", "status": 200, "delivered": True} | changes))


ENGINE_COUNTS = TokenUsage(prompt_tokens=90, completion_tokens=7, cached_tokens=64)


@pytest.mark.parametrize(
    ("usage", "prefill", "events", "expected"),
    [
        pytest.param(ENGINE_COUNTS, None, 8, (90, 64, 7, "engine"), id="the-engine-counted"),
        pytest.param(
            ENGINE_COUNTS,
            TokenUsage(prompt_tokens=90, completion_tokens=1, cached_tokens=16),
            8,
            (90, 16, 7, "engine"),
            id="the-prefill-engine-knows-the-hit",
        ),
        pytest.param(
            ENGINE_COUNTS,
            TokenUsage(prompt_tokens=90),
            8,
            (90, None, 7, "engine"),
            id="pulled-tokens-are-no-hit",
        ),
        pytest.param(None, None, 5, (100, None, 5, "counted_by_router"), id="events-were-seen"),
        pytest.param(None, None, 0, (None, None, None, "none"), id="nobody-counted"),
        pytest.param(
            None,
            TokenUsage(prompt_tokens=90, completion_tokens=1, cached_tokens=16),
            0,
            (90, 16, 1, "engine"),
            id="only-the-prefill-leg-ran",
        ),
    ],
)
async def test_missing_counts_are_missing_and_never_zero(
    book: Book,
    usage: TokenUsage | None,
    prefill: TokenUsage | None,
    events: int,
    expected: tuple[Any, ...],
) -> None:
    attempt = book.begin()
    attempt.prefill_usage, attempt.events = prefill, events

    attempts.finish(book.state, attempt, ending(usage=usage))

    (event,) = book.events
    assert (
        event.prompt_tokens,
        event.cached_tokens,
        event.completion_tokens,
        event.token_source,
    ) == expected


async def test_an_attempt_ends_once(book: Book) -> None:
    attempt = book.begin()
    opened = book.leases_open

    for outcome in ("aborted", "ok", "error"):
        attempts.finish(book.state, attempt, ending(outcome=outcome))

    assert (opened, book.leases_open) == (1, 0)
    assert [event.outcome for event in book.events] == ["aborted"]
    assert book.state.requests.total == 1


async def test_an_attempt_that_was_tried_elsewhere_is_no_answer(book: Book) -> None:
    attempts.finish(book.state, book.begin(), ending(outcome="error", status=500, delivered=False))
    attempts.finish(book.state, book.begin(), ending())

    assert (book.state.requests.total, book.state.requests.failed) == (1, 0)
    assert [event.delivered for event in book.events] == [False, True]


async def test_times_of_a_stream_are_measured_from_its_receipt(book: Book) -> None:
    attempt = book.begin()
    attempts.first_token(attempt)

    attempts.finish(book.state, attempt, ending(usage=ENGINE_COUNTS))

    (event,) = book.events
    assert event.ttft_seconds is not None
    assert event.tpot_seconds is not None
    assert event.ttft_seconds >= 0
    assert event.ended_at >= event.received_at
