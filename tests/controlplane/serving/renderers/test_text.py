"""Manifests as text can be read back, and equal manifests are equal text."""

import yaml

from controlplane.serving.renderers._text import difference, yaml_of
from controlplane.serving.renderers.plain import engine_manifests
from tests.controlplane.serving.renderers.groups import make_group


def test_what_is_written_reads_back_as_it_was() -> None:
    manifests = engine_manifests(make_group(env={"ON": "yes", "EMPTY": "", "TWO": "a\nb\n"}))

    assert list(yaml.safe_load_all(yaml_of(manifests))) == manifests


def test_the_order_of_keys_does_not_matter() -> None:
    assert yaml_of([{"a": 1, "b": 2}]) == yaml_of([{"b": 2, "a": 1}])


def test_a_difference_names_the_lines_and_nothing_is_empty() -> None:
    assert "+b: 2" in difference({"a": 1}, {"a": 1, "b": 2})
    assert difference({"a": 1}, {"a": 1}) == ""
