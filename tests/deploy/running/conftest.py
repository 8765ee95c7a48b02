"""Trees of both images, made once for all that runs from them."""

import subprocess
from functools import cache
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


@cache
def _may_shut_in() -> bool:
    """Whether this machine lets us make namespaces and mounts in them, as a container engine does.

    It takes root with its capabilities, which no script can install.
    """
    script = "mount --bind /tmp /tmp && mount -t proc proc /proc"
    command = ["unshare", "--mount", "--net", "--propagation=private", "sh", "-c", script]
    try:
        return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this machine cannot run, whatever its set-up installs; pytest counts them."""
    here = Path(__file__).parent
    ours = [item for item in items if here in item.path.parents]
    if not ours or _may_shut_in():
        return
    items[:] = [item for item in items if item not in ours]
    config.hook.pytest_deselected(items=ours)
