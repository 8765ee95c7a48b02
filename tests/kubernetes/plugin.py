"""The fixture `cluster`: a fake cluster, or the real one that CONSORT_TEST_KUBECONFIG names.

Tests are written once. Those that need what only one of the two can do say so by a marker
(`fake_only`, `real_only`) and are left out for the other; the fake is imported when it is used.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.kubernetes.fake.cluster import FakeCluster
    from tests.kubernetes.real import RealCluster

VARIABLE = "CONSORT_TEST_KUBECONFIG"


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    config.addinivalue_line("markers", "fake_only: needs what only the fake cluster can do")
    config.addinivalue_line("markers", "real_only: needs a real cluster")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of the other ring."""
    other = "fake_only" if os.environ.get(VARIABLE) else "real_only"
    left_out = [item for item in items if item.get_closest_marker(other)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def cluster() -> "Iterator[FakeCluster | RealCluster]":
    """A cluster of this test's own, or a real one in which it makes namespaces of its own."""
    if kubeconfig := os.environ.get(VARIABLE):
        from tests.kubernetes.real import RealCluster

        with RealCluster(kubeconfig) as real:
            yield real
    else:
        from tests.kubernetes.fake.cluster import FakeCluster

        with FakeCluster() as fake:
            yield fake


@pytest.fixture
def other_cluster() -> "Iterator[FakeCluster]":
    """A second fake cluster, for tests of what one does while the other suffers."""
    from tests.kubernetes.fake.cluster import FakeCluster

    with FakeCluster() as fake:
        yield fake
