"""The plain parts of the HTTP server."""

import pytest

from routing.servers.http_parts import request_of, status_line


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (200, b"HTTP/1.1 200 OK\r\n"),
        (404, b"HTTP/1.1 404 Not Found\r\n"),
        (529, b"HTTP/1.1 529 Unknown\r\n"),
    ],
)
def test_every_number_has_a_status_line(status: int, line: bytes) -> None:
    assert status_line(status) == line


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/", "/", ""),
        (b"/v1/models", "/v1/models", ""),
        (b"/v1/models/a%20b?limit=2", "/v1/models/a%20b", "limit=2"),
        (b"/x#y", "/x", ""),
        (b"http://router.test/v1/models?q", "/v1/models", "q"),
        (b"*", "*", ""),
    ],
)
def test_a_target_is_split_into_path_and_query(target: bytes, path: str, query: str) -> None:
    request = request_of(b"GET", target, {}, [b"a", b"b"])

    assert (request.method, request.path, request.query) == ("GET", path, query)
    assert request.body == b"ab"
