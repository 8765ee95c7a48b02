"""One stack of gateways for all tests that go through Envoy."""

from collections.abc import Iterator

import pytest

from tests.e2e.envoy.binary import envoy_binary
from tests.e2e.envoy.stack import Gateways
from tests.e2e.envoy.stack import gateways as started


@pytest.fixture(scope="session")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateways]:
    """Engines, a router and an Envoy for each way; skipped without Envoy."""
    envoy_binary()
    with started(tmp_path_factory.mktemp("gateways")) as running:
        yield running
