"""Files from an object store: signed, bounded, from that store only."""

import hashlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from inventory.objectstore import Keys, Store, StoreError, fetch_folder, keys_from, signed


class FakeStore(ThreadingHTTPServer):
    """Lists two files a page and hands them out; keys are checked when there are some."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = {
            "granite/config.json": b"{}", "granite/a b/w.bin": b"x" * 5000, "granite/": b"",
            "other/secret": b"no",
        }  # fmt: skip
        self.requests: list[str] = []
        self.short: set[str] = set()
        self.status = 200
        self.needs_keys = False
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeStore

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        path = urlsplit(self.path)
        allowed = not self.server.needs_keys or self._is_signed(path.path, path.query)
        if self.server.status != 200 or not allowed:
            self._send(self.server.status if allowed else 403, b"no")
        elif path.path == "/models":
            self._send(200, self._page(parse_qs(path.query)))
        else:
            key = unquote(path.path.removeprefix("/models/"))
            body = self.server.files.get(key, b"")
            self._send(200, body[:-1] if key in self.server.short else body)

    def _is_signed(self, path: str, query: str) -> bool:
        if "x-amz-date" not in self.headers:
            return False
        at = datetime.strptime(self.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        keys = Keys(access="me", secret="hidden")
        wanted = signed(keys, path, query, self.headers["Host"], at)["Authorization"]
        return self.headers.get("Authorization") == wanted

    def _page(self, query: dict[str, list[str]]) -> bytes:
        prefix, start = query["prefix"][0], int(query.get("continuation-token", ["0"])[0])
        names = [name for name in sorted(self.server.files) if name.startswith(prefix)]
        rows = "".join(
            f"<Contents><Key>{name}</Key><Size>{len(self.server.files[name])}</Size></Contents>"
            for name in names[start : start + 2]
        )
        more = start + 2 < len(names)
        token = f"<NextContinuationToken>{start + 2}</NextContinuationToken>" if more else ""
        return (
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}</ListBucketResult>"
        ).encode()

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Tests look at what was asked."""


@pytest.fixture
def fake() -> Iterator[FakeStore]:
    server = FakeStore()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def fetch(fake: FakeStore, folder: Path, prefix: str = "granite", keys: Keys | None = None) -> int:
    store = Store(fake.url, "models", keys or Keys())
    try:
        return fetch_folder(store, prefix, folder)
    finally:
        store.close()


def test_every_file_below_the_prefix_is_copied_over_pages(fake: FakeStore, tmp_path: Path) -> None:
    assert fetch(fake, tmp_path) == 2

    assert (tmp_path / "config.json").read_bytes() == b"{}"
    assert (tmp_path / "a b" / "w.bin").stat().st_size == 5000
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a b", "config.json", "w.bin"]


def test_a_file_that_is_there_is_not_asked_for_again(fake: FakeStore, tmp_path: Path) -> None:
    fetch(fake, tmp_path)
    fake.requests.clear()

    fetch(fake, tmp_path)

    assert all("list-type" in path for path in fake.requests)


def test_requests_are_signed_with_the_keys(fake: FakeStore, tmp_path: Path) -> None:
    fake.needs_keys = True

    with pytest.raises(StoreError, match="answered 403"):
        fetch(fake, tmp_path)
    with pytest.raises(StoreError, match="answered 403"):
        fetch(fake, tmp_path, keys=Keys(access="me", secret="wrong"))
    assert fetch(fake, tmp_path, keys=Keys(access="me", secret="hidden")) == 2


def test_a_signature_is_the_one_of_amazons_example() -> None:
    """GET Bucket (List Objects) of the S3 API reference, without its host's path."""
    keys = Keys(
        access="AKIAIOSFODNN7EXAMPLE", secret="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    )  # fmt: skip
    at = datetime(2013, 5, 24, tzinfo=UTC)

    found = signed(keys, "/", "max-keys=2&prefix=J", "examplebucket.s3.amazonaws.com", at)

    assert found["Authorization"].endswith(
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    )
    assert found["x-amz-content-sha256"] == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize("status", [301, 404, 500])
def test_an_answer_that_is_no_file_is_an_error_and_no_redirect_is_followed(
    fake: FakeStore, tmp_path: Path, status: int
) -> None:
    fake.status = status

    with pytest.raises(StoreError, match=f"answered {status}"):
        fetch(fake, tmp_path)


@pytest.mark.parametrize("key", ["granite/../../etc/passwd", "granite//x", "granite/a\\b"])
def test_a_name_that_leads_elsewhere_is_refused(fake: FakeStore, tmp_path: Path, key: str) -> None:
    fake.files = {key: b"x"}

    with pytest.raises(StoreError, match="no name for a file"):
        fetch(fake, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_length_is_not_kept(fake: FakeStore, tmp_path: Path) -> None:
    fake.short.add("granite/config.json")

    with pytest.raises(StoreError, match="has 1 bytes, and 2 were listed"):
        fetch(fake, tmp_path)
    assert not (tmp_path / "config.json").exists()
    assert not (tmp_path / "config.json.part").exists()


def test_nothing_below_the_prefix_is_an_error(fake: FakeStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="There is no file below"):
        fetch(fake, tmp_path, prefix="nothing")


def test_a_store_that_is_away_is_an_error(tmp_path: Path) -> None:
    store = Store("http://127.0.0.1:1", "models", Keys())

    with pytest.raises(StoreError, match="did not answer"):
        fetch_folder(store, "granite", tmp_path)
    store.close()


def test_keys_come_from_the_usual_variables() -> None:
    found = keys_from({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})

    assert (found.access, found.secret, found.region) == ("a", "b", "us-east-1")
