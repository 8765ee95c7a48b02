"""One demo for all end-to-end tests: starting it takes longer than any of them."""

from collections.abc import Iterator

import pytest

from tests.e2e.stack import Demo


@pytest.fixture(scope="session")
def demo() -> Iterator[Demo]:
    """A running demo whose comparison of policies is done and which sends no traffic itself."""
    running = Demo()
    try:
        running.start()
        yield running
    finally:
        code = running.stop()
    assert code == 0, "the demo did not end well"
