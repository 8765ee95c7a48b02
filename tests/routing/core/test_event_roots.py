"""Where chains of block keys begin, and what changes a key."""

from typing import Any

import pytest

from routing.core.event_roots import Roots, adapter_of, further_extras, mixed, mixed_chain, salt_of
from routing.core.kv_events import Stored
from routing.core.prompt import exact_root, token_block_keys


def event(**fields: Any) -> Stored:
    return Stored([1, 2], None, [], 16, **fields)


def test_roots_are_those_of_requests() -> None:
    roots = Roots()

    for adapter, salt in [(None, None), ("a", None), (None, "s"), ("a", "s"), ("a", "s")]:
        assert roots.of(adapter, salt) == exact_root(adapter, salt)


@pytest.mark.parametrize(
    ("fields", "further"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"extra_keys": [None, None]}, None, id="nulls"),
        pytest.param({"extra_keys": [["a"], ["a"]], "lora_name": "a"}, None, id="adapter"),
        pytest.param(
            {"extra_keys": [["a", "s"], ["a"]], "lora_name": "a"}, [["s"], []], id="salt-too"
        ),
        pytest.param({"extra_keys": [None, [["mm", 3]]]}, [[], [["mm", 3]]], id="media"),
        pytest.param({"extra_keys": [["s"]]}, [["s"], []], id="too-few"),
        pytest.param({"extra_keys": ["s", None]}, [["s"], []], id="no-list"),
    ],
)
def test_the_adapters_name_is_no_extra(fields: dict[str, Any], further: Any) -> None:
    assert further_extras(event(**fields)) == further


@pytest.mark.parametrize(
    ("first", "salt"), [(["s"], "s"), ([["mm", 0]], None), (["a", "b"], None), ([], None)]
)
def test_a_salt_is_one_text(first: list[Any], salt: str | None) -> None:
    assert salt_of(first) == salt


def test_an_adapter_known_by_number_has_a_name_that_nobody_asks_for() -> None:
    assert adapter_of(event()) is None
    assert adapter_of(event(lora_name="a", lora_id=1)) == "a"
    assert (adapter_of(event(lora_id=1)) or "").startswith("\0")


def test_extras_change_the_key_of_their_block_and_of_all_behind_it() -> None:
    text = bytes(range(64)) * 3
    plain = token_block_keys(text, root=7, block_tokens=16).tolist()

    keys = mixed_chain(text, 7, width=64, extras=[[], [["mm", 1]], []])

    assert keys[0] == plain[0]
    assert keys[1] != plain[1]
    assert keys[2] != plain[2]
    assert mixed(5, []) == 5
