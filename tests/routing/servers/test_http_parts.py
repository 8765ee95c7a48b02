"""The plain parts of the HTTP server."""

import pytest

from routing.servers.http_parts import status_line


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
