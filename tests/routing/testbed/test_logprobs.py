"""Simulated log-probabilities keep the promises that real ones do."""

import math

import pytest

from routing.testbed import logprobs
from routing.testbed import tokens as tk

IDS = tk.PIECE_IDS[:5]


@pytest.mark.parametrize("top", [0, 1, 20])
def test_a_chats_tokens_have_the_likeliest_beside_them(top: int) -> None:
    told = logprobs.of_chat(IDS, top=top)["content"]

    assert [one["token"] for one in told] == [tk.detokenize([number]) for number in IDS]
    for one in told:
        values = [other["logprob"] for other in one["top_logprobs"]]
        assert len(values) == len({other["token"] for other in one["top_logprobs"]}) == top
        assert values == sorted(values, reverse=True)
        assert sum(map(math.exp, values)) < 1
        assert bytes(one["bytes"]).decode() == one["token"]


def test_a_completions_offsets_follow_the_text() -> None:
    told = logprobs.of_completion(IDS, top=2, offset=8)

    assert told["text_offset"] == [8, 12, 16, 20, 24]
    assert all(len(likeliest) == 2 for likeliest in told["top_logprobs"])
    assert [
        one[token] for one, token in zip(told["top_logprobs"], told["tokens"], strict=True)
    ] == (told["token_logprobs"])
