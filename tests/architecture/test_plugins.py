"""A plugin is one file, or one folder's index, that ends with the constant of its kind."""

import importlib
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

FOLDERS = {
    "inventory/vendors": "VENDOR",
    "routing/engines": "ENGINE",
    "routing/filters": "PLUGINS",
    "routing/pickers": "PLUGINS",
    "routing/scorers": "PLUGINS",
    "controlplane/serving/engines": "ENGINE",
    "controlplane/serving/renderers": "RENDERER",
    "controlplane/serving/targets": "TARGET",
}
PLUGINS = [
    (path, constant)
    for folder, constant in FOLDERS.items()
    for path in sorted([*(ROOT / folder).glob("*.py"), *(ROOT / folder).glob("*/__init__.py")])
    if (path.stem != "base" and not path.stem.startswith("_")) or path.parent != ROOT / folder
]


@pytest.mark.parametrize(
    ("path", "constant"), PLUGINS, ids=lambda value: getattr(value, "stem", value)
)
def test_the_last_line_names_the_plugin_with_its_protocol(path: Path, constant: str) -> None:
    last = path.read_text().strip().splitlines()[-1]
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))

    assert last.startswith(f"{constant}: ")
    assert getattr(module, constant) is not None
