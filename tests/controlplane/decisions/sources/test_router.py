"""Answers of a router are bounded and typed; what is wrong with one is said."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from controlplane.decisions.sources import router


class _Port(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, body = self.server.answer  # type: ignore[attr-defined]  # set by each test
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = _answer  # noqa: N815 - names of the library

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def address(server: Any, status: int, body: bytes) -> router.RouterPort:
    server.answer = status, body
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    return router.RouterPort(name="r1", admin_url=url, token="x")


def test_a_page_comes_back_as_it_was_written(port: Any) -> None:
    body = {"router": "r1", "started_at": 1.5, "decisions": [{"number": 1}], "last": 1, "new": 3}

    page = router.fetch(address(port, 200, json.dumps(body).encode()), after=0)

    assert (page.decisions, page.last, page.shadow) == ([{"number": 1}], 1, {})


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [(200, b"<html>", "cannot be read"), (200, b"{}", "cannot be read"), (401, b"{}", "401")],
)
def test_a_page_that_is_wrong_is_an_unreachable_router(
    port: Any, status: int, body: bytes, words: str
) -> None:
    with pytest.raises(router.RouterUnreachableError, match=words):
        router.fetch(address(port, status, body), after=0)


def test_an_answer_that_does_not_end_is_cut(port: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "MAX_ANSWER_BYTES", 10)

    with pytest.raises(router.RouterUnreachableError, match="too long"):
        router.fetch(address(port, 200, b" " * 100), after=0)


def test_a_completion_comes_back_with_its_status_and_is_bounded(
    port: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = address(port, 429, b"{}").admin_url

    told = router.complete(url, {"model": "m"}, {"Authorization": "Bearer 열쇠"})

    assert (told.status, told.decision_id, told.content) == (429, "", b"{}")
    monkeypatch.setattr(router, "MAX_TEST_BYTES", 1)
    with pytest.raises(router.RouterUnreachableError, match="too long"):
        router.complete(url, {}, {})
    monkeypatch.setattr(router, "MAX_TEST_BYTES", 100)
    monkeypatch.setattr(router, "TEST_SECONDS", -1.0)
    with pytest.raises(router.RouterUnreachableError, match="too long"):
        router.complete(url, {}, {})


def test_a_refused_question_has_the_routers_words(port: Any) -> None:
    with pytest.raises(router.QuestionRefusedError, match="No such pool") as caught:
        router.ask(address(port, 404, b'{"detail": "No such pool."}'), "/admin/explain", {})

    assert caught.value.status == 404


def test_a_record_is_found_or_its_absence_is_said(port: Any) -> None:
    assert router.find(address(port, 200, b'{"record": {"id": "d"}}'), "d/1") == {"id": "d"}
    with pytest.raises(router.RouterUnreachableError, match="no record"):
        router.find(address(port, 200, b'{"record": 3}'), "d")
    with pytest.raises(router.QuestionRefusedError):
        router.find(address(port, 404, b"{}"), "d")
