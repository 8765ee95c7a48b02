"""Trees of both images, made once for all that runs from them."""

from pathlib import Path

import pytest

from tests.deploy.containers.dockerfiles import NAMES, lay_out, run_steps


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folder of each image's /opt/consort."""
    folder = tmp_path_factory.mktemp("trees")
    found = {name: lay_out(name, folder / name) for name in NAMES}
    run_steps("control-plane", found["control-plane"])
    return found
