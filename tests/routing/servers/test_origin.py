"""Addresses of engines."""

import pytest

from routing.servers.origin import Origin


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://engine.test:8000", "engine.test:8000"),
        ("http://engine.test", "engine.test:80"),
        ("http://[::1]:8000/", "[::1]:8000"),
    ],
)
def test_an_origin_is_what_the_host_header_says(url: str, text: str) -> None:
    assert str(Origin.of(url)) == text
