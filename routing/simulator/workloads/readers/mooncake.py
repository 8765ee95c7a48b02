"""Traces in Mooncake's format: one JSON object a line, prompts as ids of their 512-token blocks.

An id stands for a block and everything before it, so that it is a key as it is. Format and meaning:
the FAST '25 traces of kvcache-ai/Mooncake.
"""

from typing import Annotated

import msgspec
import xxhash

from routing.simulator.requests import Arrival, Prompt
from routing.simulator.workloads.readers.reading import (
    MOST_TOKENS,
    Bounds,
    Reading,
    TraceError,
    check_order,
    decoded,
    lines_of,
)

BLOCK_TOKENS = 512

_Length = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class _Line(msgspec.Struct, frozen=True):
    timestamp: Annotated[float, msgspec.Meta(ge=0, le=1e15)]
    """Milliseconds."""
    input_length: Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]
    output_length: _Length
    hash_ids: list[Annotated[int, msgspec.Meta(ge=0, le=2**53)]]


def read_mooncake(
    raw: bytes, *, bounds: Bounds | None = None, block_tokens: int = BLOCK_TOKENS
) -> Reading:
    """The requests of a trace. Raises TraceError with the line that is wrong.

    `block_tokens` may be a divisor of 512; a key then stands for that part of a block.
    """
    if BLOCK_TOKENS % block_tokens:
        raise TraceError(f"Blocks of {block_tokens} tokens do not fill the trace's, of 512 tokens.")
    bounds = bounds or Bounds()
    decoder = msgspec.json.Decoder(_Line)
    requests: list[Arrival] = []
    first, before, cut = None, 0.0, 0
    for number, text in lines_of(raw):
        if bounds.is_full(len(requests)):
            break
        line = decoded(decoder, text, number)
        _check_blocks(line, number)
        check_order(line.timestamp, before, line=number, unit="ms")
        before = line.timestamp
        first = before if first is None else first
        tokens = bounds.cut(line.input_length)
        cut += tokens < line.input_length
        requests.append(
            Arrival(
                at=(before - first) / 1000,
                prompt=_prompt(line.hash_ids, tokens, block_tokens),
                output_tokens=max(1, line.output_length),
            )
        )
    if not requests:
        raise TraceError("The trace holds no request.")
    return Reading(requests=tuple(requests), block_tokens=block_tokens, notes=bounds.notes(cut))


def _check_blocks(line: _Line, number: int) -> None:
    expected = -(-line.input_length // BLOCK_TOKENS)
    if len(line.hash_ids) != expected:
        raise TraceError(
            f"{line.input_length} tokens are {expected} blocks of {BLOCK_TOKENS}, and there are"
            f" {len(line.hash_ids)} hash_ids.",
            line=number,
        )


def _prompt(ids: list[int], tokens: int, block_tokens: int) -> Prompt:
    parts, whole = BLOCK_TOKENS // block_tokens, tokens // block_tokens
    keys = tuple(
        xxhash.xxh3_64_intdigest(b"%d.%d" % (ids[place // parts], place % parts))
        for place in range(whole)
    )
    return Prompt(keys, tokens, block_tokens)
