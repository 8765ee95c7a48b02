"""Answers of a router's admin port are bounded and typed."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest

from controlplane.metering.sources import router
from tests.controlplane.metering.rows import make_events, make_segment


class _Port(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body: bytes = self.server.body  # type: ignore[attr-defined]  # set by the fixture
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def fetch(server: ThreadingHTTPServer, body: bytes) -> router.RouterAnswer:
    server.body = body  # type: ignore[attr-defined]  # what the next answer is
    address = router.RouterAddress(
        admin_url=f"http://127.0.0.1:{server.server_address[1]}/", token="x"
    )
    return router.fetch_segments(address, after=0)


def test_segments_come_back_as_they_were_written(port: ThreadingHTTPServer) -> None:
    segment = make_segment(make_events(1, 3))
    answer = router.RouterAnswer(
        router="r1", segments=(segment,), closed_through=3, complete_until=1.5
    )

    assert fetch(port, msgspec.json.encode(answer)) == answer


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>", "cannot be read"),
        (b'{"router": "r1"}', "cannot be read"),
        (
            b'{"router": "r1", "segments": [], "closed_through": 0, "complete_until": 1e300}',
            "complete_until is no time",
        ),
        (
            b'{"router": "r1", "segments": [{"router": "r1", "first_sequence": 1, "last_sequence": '
            b'9223372036854775808, "sha256": "", "events": []}], "closed_through": 0, '
            b'"complete_until": 1}',
            "sequence number is impossible",
        ),
    ],
)
def test_an_answer_of_another_form_is_no_answer(
    port: ThreadingHTTPServer, body: bytes, why: str
) -> None:
    with pytest.raises(router.RouterUnreachableError, match=why):
        fetch(port, body)


def test_an_answer_without_end_is_cut(
    port: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "MAX_ANSWER_BYTES", 1000)

    with pytest.raises(router.RouterUnreachableError, match="larger than 1000 bytes"):
        fetch(port, b"x" * 100_000)


def test_an_answer_that_drips_is_cut(
    port: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "TOTAL_SECONDS", -1.0)

    with pytest.raises(router.RouterUnreachableError, match="was not there after"):
        fetch(port, b"{}")
