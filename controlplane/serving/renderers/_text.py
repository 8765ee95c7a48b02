"""Manifests as text: YAML with sorted keys, and what a patch changed as a diff."""

import difflib
from collections.abc import Iterable
from typing import Any

import yaml

from controlplane.serving.renderers.base import Manifest


class _Dumper(yaml.SafeDumper):
    """Texts of several lines stay readable, and nothing is written as an anchor."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def yaml_of(manifests: Iterable[Manifest]) -> str:
    """One document each, keys sorted, so that equal manifests are equal text."""
    written: str = yaml.dump_all(
        manifests,
        Dumper=_Dumper,
        sort_keys=True,
        default_flow_style=False,
        allow_unicode=True,
        explicit_start=True,
        width=100,
    )
    return written


def difference(before: Manifest, after: Manifest) -> str:
    """Unified diff of two manifests as YAML; empty when they are equal."""
    lines = difflib.unified_diff(
        yaml_of([before]).splitlines(),
        yaml_of([after]).splitlines(),
        fromfile="rendered",
        tofile="patched",
        lineterm="",
    )
    return "\n".join(lines)
