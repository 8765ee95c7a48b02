"""Events of two engines through gaps, lives, replays and evictions: never more than is true.

A whole publisher with a bounded replay buffer stands beside the feed. Batches are lost at random;
whenever the feed says that it knows an instance exactly, it does.
"""

from collections import Counter, deque

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from routing.core.block_masks import BlockMasks, short_keys
from routing.core.document import PromptIdentity
from routing.core.kv_events import Batch, Event, Removed, Stored
from routing.core.prompt import exact_root, token_block_keys
from routing.core.table import Instance
from routing.pool.event_feed import EventFeed
from routing.producers.prefix_index import PrefixIndex
from tests.routing.pool.builders import endpoint_dict, make_document

BLOCK = 16
BUFFER = 6
SLOTS, NUMBERS = st.integers(0, 1), st.integers(0, 2)
DOCUMENT = make_document(endpoint_dict("a"), endpoint_dict("b"))
TEXTS = [[number * 100 + at // 3 for at in range(6 * BLOCK)] for number in range(3)]


def names_of(text: list[int]) -> list[int]:
    return [2**50 + hash(tuple(text[: BLOCK * (at + 1)])) % 2**50 for at in range(6)]


class Engine:
    """What an engine holds, and the batches that it would replay.

    A block that is computed again while it is there is held twice, as vLLM does.
    """

    def __init__(self, clock: float) -> None:
        self.held: dict[int, Counter[int]] = {number: Counter() for number in range(len(TEXTS))}
        self.sequence = 0
        self.buffer: deque[tuple[int, Batch]] = deque(maxlen=BUFFER)
        self.clock = clock

    def publish(self, events: list[Event]) -> tuple[int, Batch]:
        self.clock += 1.0
        batch = Batch(events, sent_at=self.clock)
        self.buffer.append((self.sequence, batch))
        self.sequence += 1
        return self.buffer[-1]


class FeedMachine(RuleBasedStateMachine):
    @initialize(can_replay=st.booleans())
    def start(self, can_replay: bool) -> None:
        blocks = BlockMasks()
        beliefs = PrefixIndex(blocks)
        self.blocks = blocks
        self.feed = EventFeed(blocks, beliefs, PromptIdentity())
        self.instances = [
            Instance(spec, row, beliefs.add(capacity_blocks=100))
            for row, spec in enumerate(DOCUMENT.endpoints)
        ]
        self.engines = [Engine(0.0), Engine(0.0)]
        self.now = 0.0
        for instance in self.instances:
            self.feed.follow(instance, can_replay=can_replay)

    def deliver(self, slot: int, sequence: int, batch: Batch) -> None:
        self.now += 0.1
        instance = self.instances[slot]
        actions = self.feed.arrived(instance, sequence, now=self.now)
        for _ in range(3):
            if "replay" not in actions:
                break
            self.replay(slot)
            actions = self.feed.arrived(instance, sequence, now=self.now, has_waited=True)
        if "apply" in actions:
            self.feed.take(instance, batch, now=self.now)

    def replay(self, slot: int) -> None:
        instance = self.instances[slot]
        start = self.feed.health[instance].replay_from
        for sequence, batch in self.engines[slot].buffer:
            if sequence >= start:
                sent = batch.sent_at
                actions = self.feed.replayed(
                    instance, sequence, now=self.now, sent_at=lambda sent=sent: sent
                )
                if "apply" in actions:
                    self.feed.take(instance, batch, now=self.now)
        self.feed.replay_ended(instance, now=self.now, is_answered=True)

    @rule(
        slot=st.integers(0, 1), number=st.integers(0, 2), last=st.integers(1, 6), lost=st.booleans()
    )
    def store(self, slot: int, number: int, last: int, lost: bool) -> None:
        engine, text = self.engines[slot], TEXTS[number]
        held = engine.held[number]
        first = 0
        while held[first]:
            first += 1
        if first >= last:
            return
        names = names_of(text)
        event = Stored(
            names[first:last],
            names[first - 1] if first else None,
            text[BLOCK * first : BLOCK * last],
            BLOCK,
        )
        held.update(range(first, last))
        published = engine.publish([event])
        if not lost:
            self.deliver(slot, *published)

    @rule(
        slot=st.integers(0, 1), number=st.integers(0, 2), at=st.integers(0, 5), lost=st.booleans()
    )
    def evict(self, slot: int, number: int, at: int, lost: bool) -> None:
        engine = self.engines[slot]
        if not engine.held[number][at]:
            return
        engine.held[number][at] -= 1
        published = engine.publish([Removed([names_of(TEXTS[number])[at]])])
        if not lost:
            self.deliver(slot, *published)

    @rule(slot=SLOTS, reconnects=st.booleans())
    def restart(self, slot: int, reconnects: bool) -> None:
        self.engines[slot] = Engine(self.engines[slot].clock + 100.0)
        instance = self.instances[slot]
        if reconnects:
            if self.feed.health[instance].on_connect(now=self.now):
                self.replay(slot)
        elif self.feed.restarted(instance, now=self.now + 1000.0):
            self.now += 1000.0

    @invariant()
    def what_is_exact_is_true(self) -> None:
        if not hasattr(self, "feed"):
            return
        for slot, instance in enumerate(self.instances):
            engine, health = self.engines[slot], self.feed.health[instance]
            is_current = health.last_sequence == engine.sequence - 1
            if not (health.is_exact and is_current and engine.sequence):
                continue
            for number, text in enumerate(TEXTS):
                raw = b"".join(token.to_bytes(4, "little") for token in text)
                keys = token_block_keys(raw, root=exact_root(None, None), block_tokens=BLOCK)
                depth = self.blocks.match(short_keys(keys)).depths[instance.slot]
                true = 0
                while engine.held[number][true]:
                    true += 1
                assert depth == true


TestFeed = FeedMachine.TestCase
TestFeed.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
