"""Inputs that once broke a reader, or that reach far into one: they may never break it again."""

from pathlib import Path

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")
FILES = sorted(path for path in CORPUS.glob("*/*") if path.is_file())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_kept_input_is_read_or_refused(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


def test_every_reader_has_inputs() -> None:
    assert {path.parent.name for path in FILES} == set(TARGETS)


@pytest.mark.parametrize("name", sorted(TARGETS))
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_changed_input_is_read_or_refused(name: str, data: st.DataObject) -> None:
    seeds = [path.read_bytes() for path in FILES if path.parent.name == name]
    seed = bytearray(data.draw(st.sampled_from(seeds)))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(seed)))
        end = min(len(seed), start + data.draw(st.integers(0, 40)))
        seed[start:end] = data.draw(st.binary(max_size=40))

    TARGETS[name](bytes(seed))


_NAMES = st.sampled_from(
    ("model", "messages", "role", "content", "type", "text", "image_url", "url", "prompt", "input",
     "system", "tools", "stream", "stream_options", "max_tokens", "n", "cache_salt", "usage",
     "prompt_tokens", "completion_tokens", "loads", "num_waiting_uncached_tokens", "endpoints",
     "pool", "version", "x")
)  # fmt: skip
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_NAMES, inner, max_size=6),
    max_leaves=20,
)


@pytest.mark.parametrize("name", ["body", "answer", "document", "metrics"])
@given(value=_JSON)
@settings(max_examples=80, deadline=None)
def test_json_of_any_shape_is_read_or_refused(name: str, value: object) -> None:
    if name == "body" and isinstance(value, dict):
        value = {"model": "m", **value}

    TARGETS[name](msgspec.json.encode(_small(value)))


@given(value=_JSON)
@settings(max_examples=80, deadline=None)
def test_msgpack_of_any_shape_is_read_or_refused(value: object) -> None:
    TARGETS["events"](msgspec.msgpack.encode([0.0, [_small(value)], 0]))


def _small(value: object) -> object:
    """Numbers that the encoder can write."""
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return max(-(2**63), min(value, 2**64 - 1))
    if isinstance(value, list):
        return [_small(item) for item in value]
    assert isinstance(value, dict)
    return {key: _small(item) for key, item in value.items()}
