"""What helm makes of our chart, as objects: without a cluster, and without anybody's settings."""

import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import tools

CHART = Path(__file__).resolve().parents[3] / "deploy" / "helm" / "consort"
VALUES = Path(__file__).parent / "values"
GOLDEN = Path(__file__).parent / "golden"
NAMES = tuple(sorted(path.stem for path in VALUES.glob("*.yaml")))
NAMESPACE = "serving"

Manifest = dict[str, Any]


def helm() -> str:
    """Path of the program; skips the test where `make helm` has none for this machine."""
    program = tools.find("helm")
    if program is None:
        pytest.skip("helm is not there: 'make helm' installs it (Linux on x86_64).")
    return program


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """helm, in an environment of its own."""
    nowhere = "/nonexistent"
    environment = {
        "PATH": os.environ.get("PATH", ""), "HOME": nowhere, "KUBECONFIG": f"{nowhere}/config",
        "HELM_CACHE_HOME": nowhere, "HELM_CONFIG_HOME": nowhere, "HELM_DATA_HOME": nowhere,
    }  # fmt: skip
    return subprocess.run(
        [helm(), *arguments], env=environment, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


def template(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`helm template` with the values file of a name."""
    values = ["--values", str(VALUES / f"{name}.yaml")]
    return run("template", "consort", str(CHART), "--namespace", NAMESPACE, *values, *arguments)


@cache
def _text(name: str) -> str:
    done = template(name)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(name: str) -> list[Manifest]:
    """Objects of the chart with a values file, by kind and name."""
    found = [manifest for manifest in yaml.safe_load_all(_text(name)) if manifest]
    return sorted(found, key=lambda one: (one["kind"], one["metadata"]["name"], place(one)))


def place(manifest: Manifest) -> str:
    """Namespace that the object names itself, "" if none."""
    return str(manifest["metadata"].get("namespace", ""))


def golden_text(name: str) -> str:
    """The objects as they are kept: YAML with sorted keys."""
    return yaml.safe_dump_all(rendered(name), sort_keys=True, width=120)


def of_kind(name: str, *kinds: str) -> list[Manifest]:
    """Objects of some kinds."""
    return [manifest for manifest in rendered(name) if manifest["kind"] in kinds]


def workloads(name: str) -> dict[str, Manifest]:
    """Pod templates by component."""
    found = of_kind(name, "Deployment", "StatefulSet", "Job")
    return {component(one): one["spec"]["template"] for one in found}


def component(manifest: Manifest) -> str:
    """Which part of ours an object belongs to."""
    return str(manifest["metadata"]["labels"]["app.kubernetes.io/component"])


def container(pod: Manifest) -> Manifest:
    """The one container of a pod template."""
    (only,) = pod["spec"]["containers"]
    return dict(only)
