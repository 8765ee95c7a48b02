"""Settings of containers are read, or refused with the field and what is allowed there."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.serving.container_settings import ContainerSettings, read_settings
from controlplane.serving.renderers import renderers
from controlplane.serving.renderers.base import RenderRefusedError
from tests.architecture.sources import ROOT


def test_a_missing_namespace_is_refused() -> None:
    with pytest.raises(RenderRefusedError, match="namespace"):
        read_settings({})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"namespace": "A"}, "Expected lower-case letters"),
        ({"span": {"nodes": 1, "worker_arguments": ["x"]}}, "nodes"),
        ({"span": {"nodes": 2}}, "worker_arguments"),
        ({"llmd": {"picker": "not an image"}}, "a reference of an image"),
    ],
)
def test_what_is_allowed_is_said_in_words(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RenderRefusedError, match=sentence):
        read_settings({"namespace": "llm"} | settings)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
FIELDS = ["namespace", "images", "devices", "files", "labels", "env", "secrets", "patches", "x"]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_anything_is_read_or_refused_with_a_sentence(values: dict[str, Any]) -> None:
    refusal = None
    try:
        settings = read_settings(values)
    except RenderRefusedError as error:
        refusal = error

    assert str(refusal).endswith(".") if refusal else settings.namespace


def test_every_field_is_in_the_documentation() -> None:
    text = (ROOT / "docs/kubernetes.md").read_text("utf-8")
    table = text.partition("## Settings of a pool")[2].partition("### Devices")[0]

    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row[:80])}
    assert {field.name for field in msgspec.structs.fields(ContainerSettings)} <= named


def test_every_format_is_in_the_documentation() -> None:
    text = (ROOT / "docs/kubernetes.md").read_text("utf-8")

    assert all(f"| `{slug}` |" in text for slug in renderers())
