"""One endpoint's stream of cache events: subscribed, decoded, applied in slices, replayed.

The pool's router says what each batch means (`EventFeed`); here are the sockets, the work that is
left to do and the batches that wait for a replay, each bounded.
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Iterator

import zmq

from routing.core.event_decoding import MAX_PAYLOAD_BYTES, EventDecoder
from routing.core.kv_events import Batch, Cleared, Event, EventDecodeError, Removed, Stored
from routing.core.table import Instance
from routing.pool.event_feed import EventFeed
from routing.servers import clock
from routing.servers.event_socket import EventSocket, Frames
from routing.servers.event_sources import EventSource

logger = logging.getLogger(__name__)

SLICE_SECONDS = 0.001
SLICE_BLOCKS = 1_000
"""Blocks that are applied before the time is looked at: about half a millisecond."""
MAX_WAITING = 10_000
MAX_WAITING_BYTES = 64 * 1024 * 1024
_REPLAY_END = b"\xff" * 8

Slice = tuple[Batch, list[Event], bool]
"""A batch, some of its events, and whether they are its last."""


class EventStream:
    """Follows one instance from `start` to `stop`."""

    def __init__(
        self,
        feed: EventFeed,
        instance: Instance,
        decoder: EventDecoder,
        source: EventSource,
        context: "zmq.Context[zmq.Socket[bytes]]",
    ) -> None:
        self.source = source
        self._feed, self._instance, self._decoder = feed, instance, decoder
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._socket: EventSocket | None = None
        self._replay: EventSocket | None = None
        self._replay_ended = False
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._work: deque[Slice] = deque()
        self._work_sizes: deque[int] = deque()
        """Bytes of the batches whose slices are left to do, in order."""
        self._work_bytes = 0
        self._turn: asyncio.Handle | None = None
        self._is_open = True

    def start(self) -> None:
        """Follow the stream. Raises zmq.ZMQError for an address that cannot be used."""
        health = self._feed.follow(
            self._instance, can_replay=self.source.replay_address is not None
        )
        if not self.source.binds:
            self._socket = EventSocket(
                self._context, zmq.SUB, self.take, on_connect=self._connected
            )
            self._socket.subscribe(self.source.topic)
            self._socket.connect(self.source.address)
        elif health.on_connect(now=clock.monotonic()):
            self._ask()

    def _connected(self) -> None:
        """What was published before, or while the connection was away, did not come."""
        health = self._feed.health.get(self._instance)
        if health is not None and health.on_connect(now=clock.monotonic()):
            self._ask()

    def stop(self) -> None:
        """Follow no longer; what the index knows of the instance is forgotten."""
        self._is_open = False
        for socket in (self._socket, self._replay):
            if socket:
                socket.close()
        if self._turn:
            self._turn.cancel()
        self._feed.unfollow(self._instance)

    # Live batches.

    def take(self, frames: Frames) -> bool:
        """A message came; false while earlier ones are still being applied."""
        now = clock.monotonic()
        if len(frames) != 3 or len(frames[1]) != 8 or len(frames[2]) > MAX_PAYLOAD_BYTES:
            self._feed.undecodable(self._instance, now=now)
            return True
        if len(self._work) > MAX_WAITING or self._work_bytes > MAX_WAITING_BYTES:
            # A port shared with others is not held up by one of them.
            self._feed.overflowed(self._instance, now=now)
            return True
        self._offer(int.from_bytes(frames[1], "big"), frames[2], has_waited=False)
        return not self._work

    def _offer(self, sequence: int, payload: bytes, *, has_waited: bool) -> None:
        actions = self._feed.arrived(
            self._instance, sequence, now=clock.monotonic(), has_waited=has_waited
        )
        if "clear" in actions:
            self._drop_waiting()
            self._end_replay()
        if "apply" in actions:
            self._apply(payload)
        elif "replay" in actions or "wait" in actions:
            self._keep(sequence, payload)
        if "replay" in actions:
            self._ask()

    def _keep(self, sequence: int, payload: bytes) -> None:
        self._waiting.append((sequence, payload))
        self._waiting_bytes += len(payload)
        is_full = len(self._waiting) > MAX_WAITING or self._waiting_bytes > MAX_WAITING_BYTES
        if is_full:
            _, dropped = self._waiting.popleft()
            self._waiting_bytes -= len(dropped)
            self._feed.overflowed(self._instance, now=clock.monotonic())

    def _drop_waiting(self) -> None:
        self._waiting.clear()
        self._waiting_bytes = self._work_bytes = 0
        self._work.clear()
        self._work_sizes.clear()

    def _apply(self, payload: bytes) -> None:
        try:
            batch = self._decoder.decode(payload)
        except EventDecodeError as error:
            logger.debug("Events of %s: %s", self._instance.spec.id, error)
            self._feed.undecodable(self._instance, now=clock.monotonic())
            return
        slices = list(_slices(batch))
        if len(slices) == 1 and not self._work and not self._feed.is_sweeping(self._instance):
            self._feed.take(self._instance, batch, now=clock.monotonic())
            return
        self._work += slices
        self._work_sizes.append(len(payload))
        self._work_bytes += len(payload)
        self._schedule()

    # Work in slices.

    def _schedule(self) -> None:
        if self._turn is None and self._is_open:
            self._turn = self._loop.call_soon(self._work_on)

    def _work_on(self) -> None:
        self._turn = None
        until = clock.monotonic() + SLICE_SECONDS
        while self._work and clock.monotonic() < until:
            if self._feed.is_sweeping(self._instance):
                self._feed.sweep(self._instance)
                continue
            batch, events, is_last = self._work.popleft()
            if is_last:
                self._work_bytes -= self._work_sizes.popleft()
                self._feed.take(self._instance, batch, now=clock.monotonic(), part=events)
            else:
                self._feed.take_part(self._instance, batch, events)
        if self._work:
            self._schedule()
            return
        if self._replay_ended:
            self._finish_replay(is_answered=True)
        for socket in (self._replay, self._socket):
            if socket:
                socket.resume()

    # Replay.

    def _ask(self) -> None:
        """Open a socket of its own: a late answer to an earlier question must not be taken."""
        self._end_replay()
        health = self._feed.health.get(self._instance)
        if health is None or self.source.replay_address is None:
            return
        try:
            self._replay = EventSocket(self._context, zmq.DEALER, self._take_replayed)
            self._replay.connect(self.source.replay_address)
            self._replay.send([b"", health.replay_from.to_bytes(8, "big")])
        except zmq.ZMQError as error:
            logger.warning("No replay of events of %s: %s.", self._instance.spec.id, error)

    def _take_replayed(self, frames: Frames) -> bool:
        # Newer publishers name the topic, older ones do not.
        if len(frames) not in (3, 4) or len(frames[-2]) != 8:
            return True
        if frames[-2] == _REPLAY_END:
            self._replay_ended = True
            self._schedule()
            return False
        sequence = int.from_bytes(frames[-2], "big")
        payload = frames[-1]
        actions = self._feed.replayed(
            self._instance,
            sequence,
            now=clock.monotonic(),
            sent_at=lambda: self._sent_at(payload),
        )
        if "apply" in actions:
            self._apply(payload)
        return not self._work

    def _sent_at(self, payload: bytes) -> float:
        try:
            return self._decoder.decode(payload).sent_at
        except EventDecodeError:
            return 0.0

    def _finish_replay(self, *, is_answered: bool) -> None:
        self._end_replay()
        self._feed.replay_ended(self._instance, now=clock.monotonic(), is_answered=is_answered)
        waiting, self._waiting, self._waiting_bytes = self._waiting, deque(), 0
        while waiting:
            sequence, payload = waiting.popleft()
            self._offer(sequence, payload, has_waited=True)

    def _end_replay(self) -> None:
        self._replay_ended = False
        if self._replay:
            self._replay.close()
            self._replay = None

    def look(self) -> None:
        """Once a second: a replay that nobody answers ends; after a restart one is asked for."""
        health = self._feed.health.get(self._instance)
        if health is None or self._work:
            return
        now = clock.monotonic()
        if health.is_late(now=now):
            self._finish_replay(is_answered=False)
        elif health.is_unasked and health.on_connect(now=now):
            self._ask()


def _slices(batch: Batch) -> Iterator[Slice]:
    """Parts of a batch that are applied quickly; a long event is cut behind a whole block."""
    sizes = [1 if isinstance(event, Cleared) else len(event.block_hashes) for event in batch.events]
    if sum(sizes) < SLICE_BLOCKS:
        yield batch, batch.events, True
        return
    part: list[Event] = []
    blocks = 0
    for event in itertools.chain.from_iterable(map(_pieces, batch.events)):
        part.append(event)
        blocks += 1 if isinstance(event, Cleared) else len(event.block_hashes)
        if blocks >= SLICE_BLOCKS:
            yield batch, part, False
            part, blocks = [], 0
    yield batch, part, True


def _pieces(event: Event) -> Iterator[Event]:
    if isinstance(event, Cleared) or len(event.block_hashes) <= SLICE_BLOCKS:
        yield event
    elif isinstance(event, Stored):
        yield from _stored_pieces(event)
    else:
        for at in range(0, len(event.block_hashes), SLICE_BLOCKS):
            hashes = event.block_hashes[at : at + SLICE_BLOCKS]
            yield Removed(hashes, medium=event.medium, group_idx=event.group_idx)


def _stored_pieces(event: Stored) -> Iterator[Stored]:
    hashes, size, extras = event.block_hashes, event.block_size, event.extra_keys
    if size < 1 or len(event.token_ids) != len(hashes) * size:
        yield event
        return
    for at in range(0, len(hashes), SLICE_BLOCKS):
        end = at + SLICE_BLOCKS
        yield Stored(
            block_hashes=hashes[at:end],
            parent_block_hash=hashes[at - 1] if at else event.parent_block_hash,
            token_ids=event.token_ids[at * size : end * size],
            block_size=size,
            lora_id=event.lora_id,
            medium=event.medium,
            lora_name=event.lora_name,
            extra_keys=extras[at:end] if extras else None,
            group_idx=event.group_idx,
            kv_cache_spec_kind=event.kv_cache_spec_kind,
        )
