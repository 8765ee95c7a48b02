"""What an operator's own tool makes of the golden files: it reads each and knows every kind.

`make helm` brings kubectl, and `make test` calls it.
"""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.tools import find
from tests.controlplane.serving.renderers.golden_cases import FOLDER

pytestmark = [pytest.mark.fake_only, pytest.mark.processes]


@pytest.fixture
def kubectl() -> str:
    program = find("kubectl")
    if program is None:
        pytest.skip("kubectl is not there: 'make helm' installs it (Linux on x86_64).")
    return program


def run(kubectl: str, cluster: Any, folder: Path, *arguments: str) -> list[str]:
    """Lines that kubectl printed; its own words when it refused."""
    credentials = cluster.write_credentials(folder / "credentials")
    done = subprocess.run(
        [
            kubectl, "--server", cluster.url, "--token", (credentials / "token").read_text(),
            "--cache-dir", str(folder / "cache"), *arguments,
        ],
        capture_output=True, text=True, timeout=120, check=False, env={"HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_kubectl_knows_every_object(kubectl: str, cluster: Any, tmp_path: Path) -> None:
    printed = run(
        kubectl, cluster, tmp_path, "create", "-f", str(FOLDER), "--dry-run=client",
        "--validate=false", "-o", "name",
    )  # fmt: skip

    files = [path.read_text("utf-8") for path in sorted(FOLDER.glob("*.yaml"))]
    assert len(printed) == sum(len(list(yaml.safe_load_all(text))) for text in files)


@pytest.mark.parametrize("name", ["plain-vllm-nvidia-disaggregated", "llm-d-gateway", "plain-set"])
def test_the_api_server_takes_every_object(
    kubectl: str, cluster: Any, tmp_path: Path, name: str
) -> None:
    namespace = cluster.namespace()
    text = (
        (FOLDER / f"{name}.yaml")
        .read_text("utf-8")
        .replace("namespace: llm", f"namespace: {namespace}")
    )
    path = tmp_path / "objects.yaml"
    path.write_text(text, encoding="utf-8")

    printed = run(
        kubectl, cluster, tmp_path, "create", "-f", str(path), "--validate=false", "-o", "name"
    )  # fmt: skip

    assert len(printed) == len(list(yaml.safe_load_all(text)))
