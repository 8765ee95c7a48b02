"""What is rendered is the golden text, and nothing in it is misspelt.

After a change on purpose: `python -m tests.controlplane.serving.renderers.golden_cases`.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.serving.renderers._text import yaml_of
from controlplane.serving.renderers.base import Manifest
from tests.controlplane.serving.renderers import checking
from tests.controlplane.serving.renderers.golden_cases import FOLDER, cases

CASES = dict(cases())
FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_golden_text(name: str) -> None:
    assert yaml_of(CASES[name]) == (FOLDER / f"{name}.yaml").read_text("utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in FILES} == set(CASES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_object_is_one_that_the_api_server_knows(path: Path) -> None:
    for manifest in yaml.safe_load_all(path.read_text("utf-8")):
        checking.check(manifest)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_names_are_unique_and_short_and_everything_is_labelled_ours(path: Path) -> None:
    manifests: list[Manifest] = list(yaml.safe_load_all(path.read_text("utf-8")))

    keys = [(one["kind"], one["metadata"]["name"]) for one in manifests]
    assert len(set(keys)) == len(keys)
    assert all(len(name) <= 63 for _, name in keys)
    assert all(
        one["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "consort" for one in manifests
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_secret_value_is_written_in_clear(path: Path) -> None:
    for manifest in yaml.safe_load_all(path.read_text("utf-8")):
        for row in _variables(manifest):
            is_secret = any(word in row["name"] for word in ("TOKEN", "SECRET", "PASSWORD"))
            assert not (is_secret and "value" in row)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "replica"), 1),
        (("spec", "template", "spec", "containers", 0, "imag"), "x"),
        (("spec", "selector", "matchLabel"), {}),
    ],
)
def test_a_misspelt_field_of_a_kind_that_the_client_knows_is_found(
    path: tuple[Any, ...], value: Any
) -> None:
    manifest = yaml.safe_load(yaml_of([CASES["plain-autoscaled"][-1]]))
    _put(manifest, path, value)

    with pytest.raises(checking.UnknownFieldError):
        checking.check(manifest)


@pytest.mark.parametrize(
    ("case", "path"),
    [
        ("plain-gateway", ("spec", "endpointPicker")),
        ("kserve-gateway", ("spec", "template", "container")),
        ("plain-set", ("spec", "roles", 0, "spec", "leaderWorkerTemplate", "sizes")),
        ("plain-several-nodes", ("spec", "leaderWorkerTemplate", "leaderTemplate", "spec", "x")),
    ],
)
def test_a_misspelt_field_of_a_further_kind_is_found(case: str, path: tuple[Any, ...]) -> None:
    kinds = ("InferencePool", "LLMInferenceService", "DisaggregatedSet", "LeaderWorkerSet")
    (found,) = [one for one in CASES[case] if one["kind"] in kinds]
    manifest = yaml.safe_load(yaml_of([found]))
    _put(manifest, path, 1)

    with pytest.raises(checking.UnknownFieldError):
        checking.check(manifest)


def _put(manifest: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        manifest = manifest[step]
    manifest[path[-1]] = value


def _variables(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [row for one in value for row in _variables(one)]
    if not isinstance(value, dict):
        return []
    own = value.get("env", []) if isinstance(value.get("env"), list) else []
    return [*own, *(row for key, one in value.items() if key != "env" for row in _variables(one))]
