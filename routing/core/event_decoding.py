"""Decodes msgpack batches of KV events, arrays or maps at each level.

| batch | events | where |
|---|---|---|
| `[ts, events, data_parallel_rank]` | `["BlockStored", ...]` | vLLM before mid 2026, SGLang |
| the same | `{"type": "BlockStored", ...}` | vLLM 0.32 |
| `{ts, events, data_parallel_rank}` | maps | vLLM's sources after that |

Optional trailing fields may be missing, further ones are ignored. A batch that fits none of the
three typed forms (a mix, or an event that is not known here) is read once more event by event, so
that what is known still counts and the rest is counted.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from routing.core.kv_events import (
    Batch,
    Cleared,
    Event,
    EventDecodeError,
    Hash,
    Removed,
    Stored,
)

MAX_PAYLOAD_BYTES = 4 * 1024 * 1024
"""A step of 64k tokens is a tenth of it; decoding holds the event loop, about 20 ms per MB."""
MAX_EVENTS = 100_000

_STORED, _REMOVED, _CLEARED = "BlockStored", "BlockRemoved", "AllBlocksCleared"


class _StoredMap(Stored, tag_field="type", tag=_STORED):
    pass


class _RemovedMap(Removed, tag_field="type", tag=_REMOVED):
    pass


class _ClearedMap(Cleared, tag_field="type", tag=_CLEARED):
    pass


class _StoredArray(Stored, array_like=True, tag=_STORED):
    pass


class _RemovedArray(Removed, array_like=True, tag=_REMOVED):
    pass


class _ClearedArray(Cleared, array_like=True, tag=_CLEARED):
    pass


class _MapsInArray(msgspec.Struct, array_like=True):
    ts: float
    events: list[_StoredMap | _RemovedMap | _ClearedMap]
    data_parallel_rank: int | None = None


class _ArraysInArray(msgspec.Struct, array_like=True):
    ts: float
    events: list[_StoredArray | _RemovedArray | _ClearedArray]
    data_parallel_rank: int | None = None


class _MapsInMap(msgspec.Struct):
    ts: float
    events: list[_StoredMap | _RemovedMap | _ClearedMap]
    data_parallel_rank: int | None = None


class EventDecoder:
    """Decodes one publisher's payloads; the form that fitted last is tried first.

    `adjust` brings an engine's own habits into the common form; it may raise EventDecodeError.
    """

    def __init__(self, adjust: Callable[[Stored], None] | None = None) -> None:
        self._adjust = adjust
        self._forms: list[msgspec.msgpack.Decoder[Any]] = [
            msgspec.msgpack.Decoder(form) for form in (_MapsInArray, _ArraysInArray, _MapsInMap)
        ]
        self._any = msgspec.msgpack.Decoder(Any)

    def decode(self, payload: bytes) -> Batch:
        """Events in order. Raises EventDecodeError; nothing else, whatever the payload is."""
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise EventDecodeError(
                f"The payload has {len(payload)} bytes; at most {MAX_PAYLOAD_BYTES} are read."
            )
        try:
            batch = self._typed(payload) or self._one_by_one(payload)
        except RecursionError as error:
            raise EventDecodeError("The payload is nested too deeply.") from error
        except (msgspec.DecodeError, UnicodeDecodeError, OverflowError) as error:
            raise EventDecodeError(f"The payload is not msgpack: {_short(error)}.") from error
        _check_size(batch)
        _normalise(batch.events)
        if self._adjust:
            for event in batch.events:
                if isinstance(event, Stored):
                    self._adjust(event)
        return batch

    def _typed(self, payload: bytes) -> Batch | None:
        for position, form in enumerate(self._forms):
            try:
                found = form.decode(payload)
            except msgspec.ValidationError:
                continue
            if position:
                self._forms.insert(0, self._forms.pop(position))
            return Batch(events=found.events, sent_at=found.ts, rank=found.data_parallel_rank)
        return None

    def _one_by_one(self, payload: bytes) -> Batch:
        """A batch of mixed or partly unknown events."""
        stamp, raw_events, rank = _parts(self._any.decode(payload))
        events: list[Event] = []
        for raw in raw_events[:MAX_EVENTS]:
            event = _event(raw)
            if event is not None:
                events.append(event)
        return Batch(
            events=events,
            sent_at=stamp,
            rank=rank,
            unknown_events=len(raw_events) - len(events),
        )


def _parts(batch: Any) -> tuple[float, list[Any], int | None]:
    if isinstance(batch, dict):
        batch = [batch.get("ts"), batch.get("events"), batch.get("data_parallel_rank")]
    if not isinstance(batch, list) or len(batch) < 2 or not isinstance(batch[1], list):
        raise EventDecodeError("The payload is no batch of [time, events, rank].")
    stamp, events = batch[0], batch[1]
    rank = batch[2] if len(batch) > 2 else None
    if not isinstance(stamp, int | float) or not isinstance(rank, int | None):
        raise EventDecodeError("The batch's time or rank is no number.")
    return float(stamp), events, rank


_OF_ARRAY: dict[str, type[Event]] = {
    _STORED: _StoredArray,
    _REMOVED: _RemovedArray,
    _CLEARED: _ClearedArray,
}
_OF_MAP: dict[str, type[Event]] = {
    _STORED: _StoredMap,
    _REMOVED: _RemovedMap,
    _CLEARED: _ClearedMap,
}
_convert: Callable[[Any, type[Event]], Event] = msgspec.convert


def _event(raw: Any) -> Event | None:
    """A known event, `None` for everything else."""
    if isinstance(raw, list):
        tag, known = raw[0] if raw else None, _OF_ARRAY
    elif isinstance(raw, dict):
        tag, known = raw.get("type"), _OF_MAP
    else:
        return None
    kind = known.get(tag) if isinstance(tag, str) else None
    if kind is None:
        return None
    try:
        return _convert(raw, kind)
    except msgspec.ValidationError:
        return None


def _check_size(batch: Batch) -> None:
    if len(batch.events) + batch.unknown_events > MAX_EVENTS:
        raise EventDecodeError(f"The batch has more than {MAX_EVENTS} events.")


def _normalise(events: list[Event]) -> None:
    """Hashes of 32 bytes become numbers of 64 bits; nothing else is left among them.

    Signed and unsigned numbers are not made equal: no engine changes between them while it lives.
    """
    for event in events:
        if isinstance(event, Cleared):
            continue
        if bytes in set(map(type, event.block_hashes)):
            event.block_hashes = [_number(value) for value in event.block_hashes]
        if isinstance(event, Stored) and isinstance(event.parent_block_hash, bytes):
            event.parent_block_hash = _number(event.parent_block_hash)


def _number(value: Hash) -> int:
    """The last 8 bytes, big-endian."""
    return value if isinstance(value, int) else int.from_bytes(value[-8:], "big")


def _short(error: Exception) -> str:
    return str(error).rstrip(".")[:200]
