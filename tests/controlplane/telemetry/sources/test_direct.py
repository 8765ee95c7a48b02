"""Pages are read within bounds, and one bad engine disturbs no other."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from controlplane.telemetry.sources import direct

PAGE = (Path(__file__).parent / "samples" / "vllm-0.32-under-load.txt").read_bytes()


class _Pages(BaseHTTPRequestHandler):
    """/metrics is a page, /large never ends soon, /broken answers 500, /slow waits for the end."""

    def do_GET(self) -> None:
        if self.path == "/slow":
            self.server.released.wait(30)  # type: ignore[attr-defined]  # set by the fixture
        status = 500 if self.path == "/broken" else 200
        body = {"/large": PAGE * 80, "/other": b"# empty\n"}.get(self.path, PAGE)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def pages() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    server.released = threading.Event()  # type: ignore[attr-defined]  # for /slow
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.released.set()  # type: ignore[attr-defined]  # for /slow
    server.shutdown()
    thread.join()
    server.server_close()


def read(address: str, *paths: str) -> dict[str, direct.Reading]:
    return direct.read_engines(
        {path: address + path for path in paths}, dict.fromkeys(paths, "vllm")
    )


def test_good_and_bad_pages_side_by_side(pages: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "TIMEOUT_SECONDS", 1.0)

    found = read(pages, "/metrics", "/large", "/broken", "/slow", "/other")

    assert found["/metrics"].error == ""
    assert found["/metrics"].counters is not None
    assert found["/metrics"].counters.prompt_tokens == 94_598
    assert "larger than" in found["/large"].error
    assert "answered 500" in found["/broken"].error
    assert "No answer within 1 s" in found["/slow"].error
    assert "no metrics of the engine vllm" in found["/other"].error


def test_an_engine_that_is_away_is_an_error_in_its_reading() -> None:
    found = direct.read_engines({"a": "http://127.0.0.1:9/metrics"}, {"a": "vllm"})

    assert "ConnectError" in found["a"].error


def test_an_unknown_engine_is_an_error_in_its_reading(pages: str) -> None:
    found = direct.read_engines({"a": pages + "/metrics"}, {"a": "no-such-engine"})

    assert "not understood" in found["a"].error
