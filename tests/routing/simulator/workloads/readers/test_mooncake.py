"""Mooncake's format: prompts share exactly as far as their ids agree."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.simulator.notes import Note
from routing.simulator.workloads.readers.mooncake import read_mooncake
from routing.simulator.workloads.readers.reading import Bounds, TraceError
from tests.routing.simulator.workloads.draws import shared_blocks


def _line(at: float, tokens: int, ids: list[int], output: int = 7) -> bytes:
    fields = {"timestamp": at, "input_length": tokens, "output_length": output, "hash_ids": ids}
    return json.dumps(fields).encode() + b"\n"


def test_times_count_in_seconds_from_the_first_request() -> None:
    reading = read_mooncake(_line(5000, 10, [1]) + _line(6500, 10, [2]))

    assert [request.at for request in reading.requests] == [0.0, 1.5]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.lists(st.integers(0, 3), max_size=6))
def test_prompts_share_what_their_ids_share(one: list[int], other: list[int]) -> None:
    # Ids of a trace name a block and all before it, so that the same id stands at one place only.
    chains = [[10 * place + part for place, part in enumerate(ids)] for ids in (one, [*other, 4])]
    raw = b"".join(_line(0, 512 * len(ids), ids) for ids in chains)
    agreeing = [a == b for a, b in zip(*chains, strict=False)]
    shared = agreeing.index(False) if False in agreeing else len(agreeing)

    whole, split = read_mooncake(raw), read_mooncake(raw, block_tokens=64)

    assert shared_blocks(*whole.requests) == shared
    assert shared_blocks(*split.requests) == 8 * shared


def test_a_block_that_is_not_full_has_no_key() -> None:
    (request,) = read_mooncake(_line(0, 1000, [1, 2])).requests
    (split,) = read_mooncake(_line(0, 1000, [1, 2]), block_tokens=64).requests

    assert len(request.prompt.keys) == 1
    assert len(split.prompt.keys) == 1000 // 64


def test_a_limit_and_a_longest_prompt() -> None:
    raw = b"".join(_line(at, 1200, [1, 2, 3]) for at in range(5))

    reading = read_mooncake(raw, bounds=Bounds(limit=3, longest_tokens=1024))

    assert [request.prompt.tokens for request in reading.requests] == [1024] * 3
    assert reading.notes == (Note("cut-prompts", {"count": 3, "tokens": 1024}),)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        pytest.param(b"", "holds no request", id="empty"),
        pytest.param(b"x", "Line 1: It is not JSON", id="json"),
        pytest.param(_line(0, 10, [1]) + b"{}", "Line 2: .*missing required field", id="field"),
        pytest.param(_line(0, 513, [1]), "Line 1: 513 tokens are 2 blocks", id="ids"),
        pytest.param(_line(2, 9, [1]) + _line(1, 9, [1]), "Line 2: Its time 1 ms", id="order"),
        pytest.param(_line(-1, 9, [1]), "Line 1: .*>= 0", id="negative-time"),
        pytest.param(_line(0, -9, [1]), "Line 1: .*>= 1", id="negative-length"),
        pytest.param(_line(0, 9, [-1]), "Line 1: .*>= 0", id="negative-id"),
        pytest.param(_line(0, 10**9, [1]), "Line 1: .*<= 10000000", id="too-long"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(raw: bytes, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        read_mooncake(raw)


def test_blocks_that_do_not_divide_are_refused() -> None:
    with pytest.raises(TraceError, match="do not fill"):
        read_mooncake(_line(0, 9, [1]), block_tokens=48)
