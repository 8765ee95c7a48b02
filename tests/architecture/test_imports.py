"""What must run without Django does."""

import subprocess
import sys

import pytest

from tests.architecture.sources import ROOT

WITHOUT_DJANGO = """
import importlib, pkgutil, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"django", "rest_framework", "celery"}:
            raise ImportError(f"blocked: {name}")

sys.meta_path.insert(0, Blocked())
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(module, "__path__", []), name + "."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
"""


@pytest.mark.parametrize(
    "package",
    [
        "routing",
        "inventory.vendors",
        "inventory.discovery",
        "inventory.agent",
        "controlplane.serving.enginehost",
        "controlplane.serving.renderers",
        "controlplane.config.embedded",
    ],
)
def test_it_imports_with_django_and_celery_blocked(package: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_DJANGO, package],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
