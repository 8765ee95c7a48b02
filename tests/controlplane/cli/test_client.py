"""Repeats what may be repeated, and turns problems into sentences with exit codes."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from controlplane.cli.client import Client
from controlplane.cli.errors import CliError
from controlplane.cli.settings import Settings


class _Server(BaseHTTPRequestHandler):
    answers: list[tuple[int, dict[str, str], bytes]]

    def _answer(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        self.server.seen.append((self.headers, self.rfile.read(size)))  # type: ignore[attr-defined]
        status, headers, body = self.server.answers.pop(0)  # type: ignore[attr-defined]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815 - names of the library

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    server.answers, server.seen = [], []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def client(server: Any, pauses: list[float]) -> Client:
    url = f"http://127.0.0.1:{server.server_address[1]}"
    return Client(Settings(url=url, token="secret"), pause=pauses.append)


def test_a_limit_is_waited_for_as_the_server_says(server: Any) -> None:
    pauses: list[float] = []
    server.answers += [(429, {"Retry-After": "3"}, b"{}"), (503, {}, b"{}"), (200, {}, b'{"a":1}')]

    assert client(server, pauses).get("x", empty=None, q="v") == {"a": 1}

    assert pauses == [3.0, 1.0]
    assert server.seen[0][0]["Authorization"] == "Bearer secret"


def test_a_write_carries_the_same_key_on_each_try(server: Any) -> None:
    server.answers += [(503, {}, b"{}"), (200, {}, b"{}")]

    client(server, []).post("x", {"a": 1, "b": None}, key="one-key")

    assert [headers["Idempotency-Key"] for headers, _body in server.seen] == ["one-key"] * 2
    assert json.loads(server.seen[0][1]) == {"a": 1}


@pytest.mark.parametrize(
    ("status", "code"), [(404, 3), (422, 4), (409, 5), (403, 6), (429, 7), (500, 8), (405, 4)]
)
def test_a_problem_is_a_sentence_with_its_exit_code(server: Any, status: int, code: int) -> None:
    problem = {
        "detail": "No.", "hint": "Do.", "errors": [{"pointer": "#/a", "detail": "Wrong."}],
    }  # fmt: skip
    server.answers += [(status, {"X-Request-Id": "r1"}, json.dumps(problem).encode())] * 4

    with pytest.raises(CliError, match=r"No\.\n#/a: Wrong\.") as caught:
        client(server, []).get("x")

    assert (caught.value.code, caught.value.hint, caught.value.request_id) == (code, "Do.", "r1")


@pytest.mark.parametrize(("status", "code"), [(200, 8), (502, 8)])
def test_an_answer_that_is_no_json_is_an_error_of_the_server(
    server: Any, status: int, code: int
) -> None:
    server.answers += [(status, {}, b"<html>")] * 4

    with pytest.raises(CliError) as caught:
        client(server, []).get("x")

    assert caught.value.code == code
