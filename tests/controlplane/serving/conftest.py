"""Processes that tests of serving drive over loopback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.serving import services
from tests.controlplane.serving.boundary import ScriptedRouter
from tests.controlplane.serving.clusters import EnginePods, Place, forget, make_place
from tests.controlplane.serving.processes import TOKEN, EngineHost, RouterProcess, secret_file


@pytest.fixture
def engine_host(tmp_path: Path, settings: Any) -> Iterator[EngineHost]:
    """An engine host that the target `local` drives; its engines are ended afterwards."""
    host = EngineHost(tmp_path / "host")
    settings.ENGINE_HOST_URL, settings.ENGINE_HOST_TOKEN = host.url, TOKEN
    yield host
    host.close()
    host.end_engines()


@pytest.fixture
def router_process(tmp_path: Path) -> Iterator[RouterProcess]:
    """A real router without any document yet."""
    router = RouterProcess("r1", tmp_path / "r1")
    yield router
    router.close()


@pytest.fixture
def place(cluster: Any, tmp_path: Path, settings: Any) -> Iterator[Place]:
    """A cluster whose controllers work, with simulated engines behind its Pods."""
    settings.CLUSTER_CREDENTIALS_DIR = str(tmp_path / "credentials")
    place = make_place(cluster, tmp_path / "credentials")
    place.engines = EnginePods(cluster)
    cluster.controllers.start()
    yield place
    cluster.controllers.stop()
    place.engines.close()
    forget(place)


@pytest.fixture
def scripted_router(tmp_path: Path) -> Iterator[ScriptedRouter]:
    """A registered router that takes documents as it is told to."""
    router = ScriptedRouter()
    services.register_router(
        name="r1", admin_url=router.url, public_url=router.url, actor=None,
        token_reference=f"file:{secret_file(tmp_path / 'r1')}",
    )  # fmt: skip
    yield router
    router.close()
