"""Segments are fetched from routers and acknowledged only after they are stored."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
from django.utils import timezone

from controlplane.common.permissions import NotPermittedError
from controlplane.metering import services
from controlplane.metering.models import RouterProgress, SegmentRefusal, UsageEventRow
from controlplane.metering.sources.router import RouterAddress
from routing.core.usage import UsageSegment
from tests.controlplane.metering.rows import make_event, make_events, make_segment
from tests.factories import make_olga, make_user

pytestmark = pytest.mark.django_db


class RouterSpool(ThreadingHTTPServer):
    """The usage part of a router's admin port, with a list for a spool."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _AdminPort)
        self.segments: list[UsageSegment] = []
        self.acknowledged: list[int] = []
        self.complete_until = 1_796_000_000.0
        self.stored_at_acknowledge: list[int] = []

    @property
    def address(self) -> RouterAddress:
        return RouterAddress(
            admin_url=f"http://127.0.0.1:{self.server_address[1]}", token="let-me-in"
        )


class _AdminPort(BaseHTTPRequestHandler):
    server: RouterSpool

    def do_GET(self) -> None:
        match = re.search(r"after=(\d+)&limit=(\d+)", self.path)
        if self.headers["Authorization"] != "Bearer let-me-in" or match is None:
            return self._answer(401, b"{}")
        after, limit = int(match[1]), int(match[2])
        found = [segment for segment in self.server.segments if segment.last_sequence > after]
        closed = self.server.segments[-1].last_sequence if self.server.segments else 0
        body = {
            "router": "r1",
            "segments": msgspec.to_builtins(found[: min(limit, 2)]),
            "closed_through": closed,
            "complete_until": self.server.complete_until,
        }
        return self._answer(200, json.dumps(body).encode())

    def do_POST(self) -> None:
        sequence = int(self.path.split("/")[3])
        self.server.acknowledged.append(sequence)
        self.server.segments = [
            segment for segment in self.server.segments if segment.last_sequence > sequence
        ]
        self._answer(200, b"{}")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def spool() -> Iterator[RouterSpool]:
    server = RouterSpool()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_all_pages_are_stored_and_acknowledged(spool: RouterSpool) -> None:
    spool.segments = [make_segment(make_events(n, n + 9)) for n in (1, 11, 21, 31, 41)]

    stored = services.pull_router(name="r1", address=spool.address)

    assert stored == 5
    assert spool.acknowledged == [20, 40, 50]
    assert UsageEventRow.objects.count() == 50
    progress = RouterProgress.objects.get()
    assert progress.complete_until is not None
    assert progress.last_error == ""


def test_a_page_that_was_stored_but_not_acknowledged_is_acknowledged_next_time(
    spool: RouterSpool,
) -> None:
    segments = [make_segment(make_events(1, 10)), make_segment(make_events(11, 20))]
    services.ingest_segment(segments[0])
    spool.segments = list(segments)

    stored = services.pull_router(name="r1", address=spool.address)

    assert stored == 1
    assert spool.segments == []
    assert UsageEventRow.objects.count() == 20


def test_a_refused_segment_is_not_acknowledged_and_stops_the_router_there(
    spool: RouterSpool,
) -> None:
    spool.segments = [
        make_segment(make_events(1, 10)),
        make_segment(make_events(11, 20), sha256="0" * 64),
        make_segment(make_events(21, 30)),
    ]

    for _ in range(2):
        services.pull_router(name="r1", address=spool.address)

    assert spool.acknowledged == [10]
    assert UsageEventRow.objects.count() == 10
    progress = RouterProgress.objects.get()
    assert progress.complete_until is None
    assert "from event 11 on was refused" in progress.last_error


def test_a_person_of_finance_may_go_on_behind_a_refused_segment(spool: RouterSpool) -> None:
    spool.segments = [
        make_segment(make_events(1, 10), sha256="0" * 64),
        make_segment(make_events(11, 20)),
    ]
    services.pull_router(name="r1", address=spool.address)
    refusal = SegmentRefusal.objects.get()

    with pytest.raises(NotPermittedError):
        services.skip_segment(refusal_id=refusal.pk, actor=make_olga(), reason="damaged disk")
    services.skip_segment(
        refusal_id=refusal.pk, actor=make_user(None, "finance"), reason="damaged disk"
    )
    services.pull_router(name="r1", address=spool.address)

    assert UsageEventRow.objects.count() == 10
    assert RouterProgress.objects.get().missing_events == 10


def test_a_router_that_is_away_is_noted() -> None:
    address = RouterAddress(admin_url="http://127.0.0.1:9", token="x")

    assert services.pull_router(name="r1", address=address) == 0

    assert "ConnectError" in RouterProgress.objects.get().last_error


def test_a_wrong_token_is_noted(spool: RouterSpool) -> None:
    address = RouterAddress(admin_url=spool.address.admin_url, token="wrong")

    services.pull_router(name="r1", address=address)

    assert "answered 401" in RouterProgress.objects.get().last_error


def test_a_lost_router_no_longer_holds_usage_back() -> None:
    services.ingest_segment(make_segment([make_event(1)]))
    finance = make_user(None, "finance")

    progress = services.declare_router_lost(router="r1", actor=finance, reason="disk destroyed")

    assert progress.lost_at is not None
    assert progress.lost_reason == "disk destroyed"


def test_a_router_speaks_for_itself_only(spool: RouterSpool) -> None:
    spool.segments = [make_segment(make_events(1, 9))]

    stored = services.pull_router(name="r2", address=spool.address)

    assert (stored, UsageEventRow.objects.count()) == (0, 0)
    assert spool.acknowledged == []
    assert RouterProgress.objects.get().last_error == "It answered as 'r1', not as 'r2'."


def test_a_router_that_counts_from_the_start_again_is_told_and_not_ignored(
    spool: RouterSpool,
) -> None:
    services.pull_router(name="r1", address=spool.address)
    read = RouterProgress.objects.get().last_sequence
    RouterProgress.objects.update(last_sequence=read + 1000)

    stored = services.pull_router(name="r1", address=spool.address)

    assert stored == 0
    assert f"read through event {read + 1000}" in RouterProgress.objects.get().last_error


def test_a_router_whose_clock_is_ahead_completes_no_future(
    spool: RouterSpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = timezone.now()
    monkeypatch.setattr(spool, "complete_until", before.timestamp() + 10**6)

    services.pull_router(name="r1", address=spool.address)

    complete_until = RouterProgress.objects.get().complete_until
    assert complete_until is not None
    assert before <= complete_until <= timezone.now()
