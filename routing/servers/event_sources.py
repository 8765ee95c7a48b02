"""Where an endpoint's cache events are: as the document says, or as the engine itself says.

An engine binds addresses with a wildcard and *connects* to any other, in which case somebody else
has to bind. A document may ask this router to: its address then has a wildcard (`tcp://*:5557`).
An address that only an engine told is never bound, because it would let an engine open ports here.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from routing.core.specs.endpoints import EndpointSpec

DISCOVERY_PATH = "/kv_event_sources"
WILDCARDS = ("*", "0.0.0.0", "[::]", "::")  # noqa: S104 - recognised, not bound here


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSource:
    """Sockets of one publisher."""

    address: str
    """To connect to, or to bind."""
    replay_address: str | None
    topic: str
    """Beginning of its topics; "" takes all."""
    binds: bool = False


class NoEventsError(Exception):
    """An endpoint's events cannot be followed; the message says why."""


class _Source(msgspec.Struct):
    enable_kv_cache_events: bool = True
    publisher: str = "zmq"
    endpoint: str | None = None
    replay_endpoint: str | None = None


_SOURCES = msgspec.json.Decoder(dict[str, _Source])


def stated_source(spec: EndpointSpec) -> EventSource | None:
    """The document's, `None` where it leaves that to the engine."""
    events = spec.kv_events
    if events is None:
        return None
    host, _ = _split(events.endpoint)
    return EventSource(
        address=events.endpoint,
        replay_address=events.replay_endpoint,
        topic=events.topic,
        binds=host in WILDCARDS,
    )


def discovered_source(answer: bytes, spec: EndpointSpec, *, host: str) -> EventSource:
    """Read an engine's answer to `GET /kv_event_sources`; `host` is where the engine is.

    A rank that the answer does not list has the first one's ports plus its number. Raises
    NoEventsError.
    """
    try:
        sources = _SOURCES.decode(answer)
    except msgspec.DecodeError as error:
        raise NoEventsError(
            f"The engine's list of event sources cannot be read: {error}."
        ) from error
    rank = spec.data_parallel_rank or 0
    if len(sources) > 1 and spec.data_parallel_rank is None:
        raise NoEventsError(
            "The engine has several data-parallel ranks behind one address. Give each rank an"
            " endpoint of its own with data_parallel_rank, else its cache cannot be followed."
        )
    found, offset = sources.get(str(rank)), 0
    if found is None:
        found, offset = sources.get("0"), rank
    if found is None or not found.enable_kv_cache_events or not found.endpoint:
        raise NoEventsError("The engine publishes no cache events.")
    if found.publisher != "zmq":
        raise NoEventsError(f"The engine publishes cache events by {found.publisher}, not zmq.")
    if _split(found.endpoint)[0] not in WILDCARDS:
        raise NoEventsError(
            f"The engine sends cache events to {found.endpoint[:200]} instead of binding a port."
            " State kv_events with a wildcard address to let this router bind it."
        )
    replay = found.replay_endpoint
    return EventSource(
        address=_at(found.endpoint, host=host, offset=offset),
        replay_address=_at(replay, host=host, offset=offset) if replay else None,
        topic="",
    )


def _split(address: str) -> tuple[str, int]:
    """Host and port. Raises NoEventsError."""
    scheme, _, rest = address.partition("://")
    host, _, port = rest.rpartition(":")
    if scheme != "tcp" or not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise NoEventsError(f"'{address[:200]}' is no address of cache events.")
    return host, int(port)


def _at(address: str, *, host: str, offset: int) -> str:
    """The same port at the engine's host: engines tell addresses as they were configured."""
    _, port = _split(address)
    return f"tcp://{host}:{port + offset}"


def described(source: EventSource | None) -> dict[str, Any] | None:
    """For people."""
    if source is None:
        return None
    return {
        "address": source.address,
        "replay_address": source.replay_address,
        "topic": source.topic,
        "binds": source.binds,
    }
