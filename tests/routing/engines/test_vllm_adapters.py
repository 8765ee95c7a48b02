"""Adapters on vLLM's pages: the newest labels count, an idle loaded one is in the model list."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.core.adapters import Adapters
from routing.engines._vllm_adapters import adapters_of, resident_adapters
from routing.engines.vllm import ENGINE


def line(running: str, waiting: str, at: str, *, most: int = 1, engine: str = "") -> bytes:
    """One series as vLLM 0.32.0 writes it; its page has no engine label there."""
    core = f'engine="{engine}",' if engine else ""
    return (
        f'vllm:lora_requests_info{{{core}max_lora="{most}",running_lora_adapters="{running}",'
        f'waiting_lora_adapters="{waiting}"}} {at}\n'
    ).encode()


# The values are those of a recorded page, after its one adapter had gone idle.
PAGE = b"# TYPE vllm:lora_requests_info gauge\n" + (
    line("", "", "1.7959842883691146e+09") + line("lora1", "lora1", "1.7959842784379861e+09")
)


@pytest.mark.lesson("S05")
def test_the_newest_set_of_labels_is_true_whatever_their_order() -> None:
    earlier = PAGE.replace(b"1.79598428836", b"1.79598420836")

    assert adapters_of(PAGE) == Adapters(most=1)
    assert adapters_of(earlier) == Adapters(
        running=frozenset({"lora1"}), waiting=frozenset({"lora1"}), most=1
    )


def test_several_adapters_stand_in_one_label_and_cores_are_joined() -> None:
    page = b"\n" + line("a,b", "", "5", most=4, engine="0")
    page += line("c", "d", "4", most=2, engine="1")

    assert adapters_of(page) == Adapters(
        running=frozenset({"a", "b", "c"}), waiting=frozenset({"d"}), most=2
    )


def test_a_page_without_adapters_says_nothing_of_them() -> None:
    assert adapters_of(b"# nothing\nvllm:num_requests_running{} 3\n") is None
    assert ENGINE.signals(b"# nothing\n").adapters is None


def test_loaded_adapters_are_read_where_a_release_reports_them_not_verified() -> None:
    page = b"""
vllm:lora_adapter_loaded{adapter_name="a",level="gpu"} 1
vllm:lora_adapter_loaded{adapter_name="b",level="gpu"} 0
"""

    assert adapters_of(page) == Adapters(loaded=frozenset({"a"}))


@pytest.mark.lesson("S05")
def test_models_with_a_parent_are_loaded_adapters() -> None:
    answer = {
        "object": "list",
        "data": [
            {"id": "granite", "root": "granite", "parent": None},
            {"id": "support", "root": "/adapters/support", "parent": "granite"},
        ],
    }

    assert resident_adapters(json.dumps(answer).encode()) == {"support"}


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"data": 3}', b'{"data": [{"id": 3}]}', b"\xff"])
def test_another_answer_is_unknown_and_not_empty(answer: bytes) -> None:
    assert resident_adapters(answer) is None


@given(st.binary(max_size=200))
def test_no_bytes_break_it(noise: bytes) -> None:
    adapters_of(b"\nvllm:lora_requests_info{" + noise + b"} 5\n")
    resident_adapters(noise)
