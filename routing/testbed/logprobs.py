"""Log-probabilities in the two forms of OpenAI's APIs. Simulated: they follow from the token alone.

They fall with the rank, sum to less than one, and are the same for the same token each time.
"""

from collections.abc import Iterable
from typing import Any

from routing.testbed import tokens as tk

MOST_TOP = 20
"""vLLM's default of `--max-logprobs`."""


def of_chat(ids: Iterable[int], *, top: int) -> dict[str, Any]:
    """`choices[].logprobs` of a chat."""
    return {"content": [_entry(number, top) for number in ids]}


def of_completion(ids: Iterable[int], *, top: int, offset: int) -> dict[str, Any]:
    """`choices[].logprobs` of a completion; `offset` is the place of the first token's text."""
    told: dict[str, Any] = {
        "text_offset": [],
        "token_logprobs": [],
        "tokens": [],
        "top_logprobs": [],
    }
    for number in ids:
        text = tk.detokenize([number])
        told["text_offset"].append(offset)
        told["token_logprobs"].append(_logprob(number, 0))
        told["tokens"].append(text)
        told["top_logprobs"].append(
            {tk.detokenize([other]): _logprob(number, rank) for rank, other in _top(number, top)}
        )
        offset += len(text)
    return told


def _entry(number: int, top: int) -> dict[str, Any]:
    others = [_token(other, _logprob(number, rank)) for rank, other in _top(number, top)]
    return _token(number, _logprob(number, 0)) | {"top_logprobs": others}


def _token(number: int, logprob: float) -> dict[str, Any]:
    text = tk.detokenize([number])
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}


def _top(number: int, top: int) -> list[tuple[int, int]]:
    """Ranks and tokens, the one that was said first."""
    place = number % len(tk.PIECE_IDS)
    others = (tk.PIECE_IDS[(place + step) % len(tk.PIECE_IDS)] for step in range(top + 1))
    ranked = [number, *(other for other in others if other != number)]
    return list(enumerate(ranked[:top]))


def _logprob(number: int, rank: int) -> float:
    return -(0.3 + (number % 97) / 200) - 1.5 * rank
