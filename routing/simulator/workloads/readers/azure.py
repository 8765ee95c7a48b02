"""Azure's public traces: CSV of times, prompt lengths and answer lengths.

They say nothing of what prompts share. `Sharing` states how much, so that cache hits of a replay
are modelled and not recorded. Format: `TIMESTAMP,ContextTokens,GeneratedTokens` of the 2023 and
2024 traces of Azure/AzurePublicDataset.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from routing.simulator.notes import Note
from routing.simulator.requests import BLOCK_TOKENS, Arrival, prompt_of
from routing.simulator.workloads.readers.reading import (
    MOST_TOKENS,
    Bounds,
    Reading,
    TraceError,
    check_order,
    lines_of,
)

HEADER = b"TIMESTAMP,ContextTokens,GeneratedTokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """The beginning of each prompt is that of one of `groups`, taken in turn."""

    share: float = 0.0
    """Of each prompt's tokens, 0 to 1."""
    groups: int = 20


def read_azure(
    raw: bytes,
    *,
    bounds: Bounds | None = None,
    sharing: Sharing | None = None,
    block_tokens: int = BLOCK_TOKENS,
) -> Reading:
    """The requests of a trace. Raises TraceError with the line that is wrong."""
    bounds, sharing = bounds or Bounds(), sharing or Sharing()
    requests: list[Arrival] = []
    first, before, cut = None, 0.0, 0
    rows = lines_of(raw)
    number, head = next(rows, (1, b""))
    if head != HEADER:
        raise TraceError(f"The first line is not '{HEADER.decode()}'.", line=number)
    for number, text in rows:
        if bounds.is_full(len(requests)):
            break
        at, prompt_tokens, output_tokens = _row(text, number)
        check_order(at, before, line=number, unit="s")
        before = at
        first = at if first is None else first
        tokens = bounds.cut(prompt_tokens)
        cut += tokens < prompt_tokens
        shared = int(tokens * sharing.share)
        parts = ((f"group {len(requests) % sharing.groups}", shared), (number, tokens - shared))
        prompt = prompt_of(parts, block_tokens=block_tokens)
        requests.append(Arrival(at=at - first, prompt=prompt, output_tokens=max(1, output_tokens)))
    if not requests:
        raise TraceError("The trace holds no request.")
    stated = (Note("stated-share", {"share": f"{sharing.share:.0%}"}),)
    return Reading(
        requests=tuple(requests), block_tokens=block_tokens, notes=stated + bounds.notes(cut)
    )


def _row(text: bytes, number: int) -> tuple[float, int, int]:
    """Unix time, prompt tokens, answer tokens."""
    cells = text.decode("utf-8", "replace").split(",")
    if len(cells) != 3:
        raise TraceError(f"There are {len(cells)} columns; three are read.", line=number)
    try:
        moment = datetime.fromisoformat(cells[0].strip())
        prompt_tokens, output_tokens = int(cells[1]), int(cells[2])
    except ValueError as error:
        raise TraceError(f"A cell is no time or number: {error}.", line=number) from error
    if not (1 <= prompt_tokens <= MOST_TOKENS and 0 <= output_tokens <= MOST_TOKENS):
        raise TraceError(
            f"{prompt_tokens} and {output_tokens} tokens: a prompt has 1 to {MOST_TOKENS} tokens,"
            " an answer 0 or more.",
            line=number,
        )
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.timestamp(), prompt_tokens, output_tokens
