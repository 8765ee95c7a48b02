"""A cluster for tests of the target alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.serving.clusters import Place, forget, make_place


@pytest.fixture
def quiet(cluster: Any, tmp_path: Path, settings: Any) -> Iterator[Place]:
    """A cluster in which nothing happens by itself, as far as the test can tell it so."""
    settings.CLUSTER_CREDENTIALS_DIR = str(tmp_path / "credentials")
    place = make_place(cluster, tmp_path / "credentials")
    yield place
    forget(place)
