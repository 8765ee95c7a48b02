"""Traffic that our own routers recorded: usage events, with decision records where there are some.

One JSON object a line, in any order: usage events, closed segments of them, lines of the decision
ring. None of them holds text or all keys of a prompt. What prompts shared is modelled:

- Requests whose records name the same first and last key and number of blocks are the same prompt.
- Others begin alike as far as the engine found them in its cache (`cached_tokens`), with those of
  the same first key, or of the same tenant where there is no record.
- The rest of a prompt is its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from routing.core.usage import OWN_TENANT
from routing.simulator.notes import Note
from routing.simulator.requests import BLOCK_TOKENS, Arrival, prompt_of
from routing.simulator.workloads.readers.reading import (
    MOST_REQUESTS,
    MOST_TOKENS,
    Bounds,
    Reading,
    TraceError,
    decoded,
    lines_of,
)

_Tokens = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)] | None
_Name = Annotated[str, msgspec.Meta(max_length=500)]


class _Event(msgspec.Struct, frozen=True):
    request_id: _Name
    received_at: Annotated[float, msgspec.Meta(ge=0, le=1e12)]
    tenant: _Name = "tenant"
    delivered: bool = True
    prompt_tokens: _Tokens = None
    cached_tokens: _Tokens = None
    completion_tokens: _Tokens = None


class _Segment(msgspec.Struct, frozen=True):
    events: list[_Event]


class _Prefix(msgspec.Struct, frozen=True):
    first: _Name
    last: _Name
    blocks: int


class _Facts(msgspec.Struct, frozen=True):
    prefix: _Prefix | None = None
    session: _Name | None = None
    priority: int = 0


class _Decision(msgspec.Struct, frozen=True):
    request_id: _Name
    request: _Facts | None = None


@dataclass(slots=True)
class _Found:
    events: dict[str, _Event] = field(default_factory=dict)
    """Of attempts that reached the client, by request."""
    facts: dict[str, _Facts] = field(default_factory=dict)
    retried: int = 0
    unknown: int = 0


def read_usage(
    raw: bytes, *, bounds: Bounds | None = None, block_tokens: int = BLOCK_TOKENS
) -> Reading:
    """The requests that reached an engine. Raises TraceError with the line that is wrong."""
    bounds = bounds or Bounds()
    found = _Found()
    for number, line in lines_of(raw):
        _take(found, line, number)
    ordered = sorted(found.events.values(), key=lambda event: (event.received_at, event.request_id))
    requests: list[Arrival] = []
    cut = 0
    for event in ordered:
        if bounds.is_full(len(requests)):
            break
        recorded = event.prompt_tokens or 0
        tokens = bounds.cut(recorded)
        cut += tokens < recorded
        facts = found.facts.get(event.request_id) or _Facts()
        requests.append(
            Arrival(
                at=event.received_at - ordered[0].received_at,
                prompt=prompt_of(_parts(event, facts, tokens), block_tokens=block_tokens),
                output_tokens=max(1, event.completion_tokens or 0),
                tenant=event.tenant,
                session=facts.session,
                priority=facts.priority,
            )
        )
    if not requests:
        raise TraceError("There is no usage event with the length of its prompt and answer.")
    notes = tuple(_notes(found)) + bounds.notes(cut)
    return Reading(requests=tuple(requests), block_tokens=block_tokens, notes=notes)


def _take(found: _Found, line: bytes, number: int) -> None:
    """One line of any of the kinds."""
    names = decoded(msgspec.json.Decoder(dict[str, msgspec.Raw]), line, number)
    if "events" in names:
        for event in decoded(msgspec.json.Decoder(_Segment), line, number).events:
            _take_event(found, event)
    elif "received_at" in names:
        _take_event(found, decoded(msgspec.json.Decoder(_Event), line, number))
    elif "request" in names:
        decision = decoded(msgspec.json.Decoder(_Decision), line, number)
        if decision.request is not None:
            found.facts[decision.request_id] = decision.request
    elif "outcome_of" not in names:
        raise TraceError("It is neither a usage event nor a decision record.", line=number)
    if len(found.events) > MOST_REQUESTS:
        raise TraceError(f"There are more than {MOST_REQUESTS} requests.", line=number)


def _take_event(found: _Found, event: _Event) -> None:
    if event.tenant == OWN_TENANT:
        return
    if not event.delivered:
        found.retried += 1
    elif not event.prompt_tokens or event.completion_tokens is None:
        found.unknown += 1
    else:
        found.events[event.request_id] = event


def _parts(event: _Event, facts: _Facts, tokens: int) -> Iterator[tuple[str, int]]:
    prefix = facts.prefix
    shared = min(event.cached_tokens or 0, tokens)
    yield f"shared {prefix.first if prefix else event.tenant}", shared
    own = f"{prefix.last} {prefix.blocks}" if prefix else event.request_id
    yield f"own {own}", tokens - shared


def _notes(found: _Found) -> Iterator[Note]:
    if found.retried:
        yield Note("retried", {"count": found.retried})
    if found.unknown:
        yield Note("no-counts", {"count": found.unknown})
    yield Note("modelled-sharing")
