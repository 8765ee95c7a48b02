"""How far one publisher's stream of cache events can be believed, as a pure state machine.

A batch has a sequence number. The next number is applied. A larger one is a gap, for which a replay
is asked where there is one. A smaller one is a new life of the engine, whose cache was empty then:
its blocks are dropped first. vLLM counts from 0; of a publisher that counts from 1 it is not known
whether its first batch was lost, so it stays `partial`, which costs nothing but certainty.

| state | known blocks | means |
|---|---|---|
| `starting` | none | nothing was heard yet |
| `replaying` | as before | batches that come live wait until what was missed is here |
| `live` | all, and no others | beliefs from own decisions are needed for requests in flight only |
| `partial` | some, and no others | the beginning was missed, so beliefs fill in |
| `doubtful` | perhaps some that left | events were lost; trust fades until the blocks are dropped |

One publisher's trouble never touches another's. A protocol that sends snapshots would call
`restored` (none is implemented: the proposals differ).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Action = Literal["clear", "apply", "replay", "wait", "drop"]
"""`clear`: forget the publisher's blocks and whatever waits; `replay`: ask for everything from
`replay_from`, and let this batch wait; `wait`: offer it again when the replay has ended."""
Reason = Literal[
    "gap",
    "rollback",
    "undecodable",
    "unknown-event",
    "unknown-parent",
    "replay-unanswered",
    "replay-incomplete",
    "silence",
    "overflow",
    "disconnected",
]
State = Literal["starting", "replaying", "live", "partial", "doubtful"]

SILENT_AFTER_SECONDS = 30.0
SILENT_AFTER_PROMPTS = 5
"""So many prompts with blocks to store must have been answered before silence says anything."""
HALF_LIFE_SECONDS = 60.0
SPENT_BELOW = 0.1
REPLAY_PATIENCE_SECONDS = 5.0
UNKNOWN_PARENT_SHARE = 0.2
"""More of the blocks than this without a known parent: stored blocks were missed."""


@dataclass(slots=True)
class EventHealth:
    """One publisher, as long as its endpoint's instance lives."""

    can_replay: bool
    state: State = "starting"
    last_sequence: int | None = None
    last_event_at: float | None = None
    last_sent_at: float = 0.0
    """By the engine's clock, of the last batch that was applied."""
    counts: Counter[str] = field(default_factory=Counter)
    """Times of each reason."""
    doubtful_since: float = 0.0
    replay_from: int = 0
    _state_before: State = "starting"
    _replay_until: float = 0.0
    _trigger: int | None = None
    """The batch for which a replay was asked."""
    _waiting_sequence: int | None = None
    _keeps: bool = False
    """What was known before a replay is still true."""
    _may_be_anew: bool = False
    _is_silent: bool = False
    """The replay has brought nothing yet."""
    _missed: bool = False
    """Something between the asked number and the replay's batches is not there any more."""
    _prompts: int = 0
    """Prompts since the last event."""
    _first_prompt_at: float = 0.0
    _blocks: float = 0.0
    _orphans: float = 0.0

    # Batches that come live.

    def on_batch(
        self, sequence: int, *, now: float, has_waited: bool = False
    ) -> tuple[Action, ...]:
        """What to do with a batch, in order; `has_waited` when it is offered again."""
        self.last_event_at, self._prompts = now, 0
        if self.state == "replaying":
            return self._while_replaying(sequence, now=now)
        if self.last_sequence is None:
            return self._first(sequence, now=now, has_waited=has_waited)
        return self._next(sequence, self.last_sequence, now=now, has_waited=has_waited)

    def _next(
        self, sequence: int, last: int, *, now: float, has_waited: bool
    ) -> tuple[Action, ...]:
        if sequence == last + 1:
            self.last_sequence = sequence
            return ("apply",)
        if sequence > last:
            self.counts["gap"] += 1
            return self._ask(last + 1, sequence, now=now) or self._lost(sequence, now=now)
        is_known = has_waited or sequence == last
        return ("drop",) if is_known else self._new_life(sequence, now=now)

    def _while_replaying(self, sequence: int, *, now: float) -> tuple[Action, ...]:
        waiting = self._waiting_sequence
        if waiting is not None and sequence < waiting:
            # What is being replayed is of a life that is over.
            self.state = "starting"
            return self._new_life(sequence, now=now)
        self._waiting_sequence = sequence
        return ("wait",)

    def _first(self, sequence: int, *, now: float, has_waited: bool) -> tuple[Action, ...]:
        if sequence and self.can_replay and not has_waited:
            return self._ask(0, sequence, now=now)
        # Where no replay reaches back further, the beginning was missed.
        self.state = "partial" if sequence else "live"
        self.last_sequence = sequence
        return ("apply",)

    def _new_life(self, sequence: int, *, now: float) -> tuple[Action, ...]:
        self.on_restart()
        return ("clear", *self._first(sequence, now=now, has_waited=False))

    def _ask(self, start: int, sequence: int | None, *, now: float) -> tuple[Action, ...]:
        if not self.can_replay:
            return ()
        if self.state != "replaying":
            self._state_before, self.state = self.state, "replaying"
        self.replay_from, self._missed = start, False
        self._trigger = self._waiting_sequence = sequence
        self._keeps = self.last_sequence is not None
        self._may_be_anew = self._keeps and start == 0
        self._is_silent = True
        self._replay_until = now + REPLAY_PATIENCE_SECONDS
        return ("replay",)

    def _lost(self, sequence: int, *, now: float) -> tuple[Action, ...]:
        self.last_sequence = sequence
        self.doubt(now=now)
        return ("apply",)

    # Replay.

    def on_connect(self, *, now: float) -> bool:
        """Connected, perhaps again: whatever was sent meanwhile is asked for, if it can be.

        True asks for everything: the publisher may be another life, which the times of the replay
        will tell.
        """
        if self._ask(0, None, now=now):
            return True
        if self.last_sequence is not None:
            self.trouble("disconnected", now=now)
        return False

    def on_replayed(
        self, sequence: int, *, now: float, sent_at: Callable[[], float]
    ) -> tuple[Action, ...]:
        """A batch of the replay; `sent_at` is asked where it tells whether the life is another."""
        if self.state != "replaying":
            return ("drop",)
        self.last_event_at = now
        self._replay_until = now + REPLAY_PATIENCE_SECONDS
        last, self._is_silent = self.last_sequence, False
        if last is not None and sequence <= last:
            if not self._may_be_anew or sent_at() <= self.last_sent_at:
                self._may_be_anew = False
                return ("drop",)
            self.counts["rollback"] += 1
            last = None
        self._may_be_anew &= last is not None
        actions: tuple[Action, ...] = ("apply",)
        if last is None and self._keeps:
            self._keeps, actions = False, ("clear", "apply")
        is_next = sequence == (0 if last is None else last + 1)
        self._missed |= not is_next
        self.last_sequence = sequence
        return actions

    def on_replay_end(self, *, now: float, is_answered: bool = True) -> tuple[Action, ...]:
        """The replay ended, or nobody answered it; what to do before what waited is offered."""
        if self.state != "replaying":
            return ()
        self._waiting_sequence = None
        actions: tuple[Action, ...] = ()
        if is_answered and self._is_silent and self._may_be_anew and self._keeps:
            # A publisher without any past has just been born.
            self.counts["rollback"] += 1
            self.last_sequence, self._keeps = None, False
            actions = ("clear",)
        trigger, last = self._trigger, self.last_sequence
        if trigger is not None and (last is None or last + 1 < trigger):
            # It ends before the batch for which it was asked.
            self._missed = True
            self.last_sequence = trigger - 1
        is_whole = is_answered and not self._missed
        if not is_whole:
            self.counts["replay-incomplete" if is_answered else "replay-unanswered"] += 1
        self._end_state(is_whole=is_whole, now=now)
        return actions

    def _end_state(self, *, is_whole: bool, now: float) -> None:
        if not self._keeps:
            # Nothing was known before it, so that nothing wrong is known after it.
            unheard: State = "starting" if self.last_sequence is None else "partial"
            self.state = "live" if is_whole else unheard
            return
        self.state = self._state_before
        if not is_whole:
            self.doubt(now=now)

    def restored(self, sequence: int) -> None:
        """The index holds exactly what the engine held after this batch: for snapshots."""
        self.last_sequence, self.state = sequence, "live"

    def is_late(self, *, now: float) -> bool:
        """A replay was asked for and nothing came for too long."""
        return self.state == "replaying" and now > self._replay_until

    @property
    def is_unasked(self) -> bool:
        """A life has begun of which nothing was heard or asked."""
        return self.state == "starting" and self.can_replay and self.counts["rollback"] > 0

    # Trouble.

    def trouble(self, reason: Reason, *, now: float) -> None:
        """Something was lost or cannot be read: blocks may have left unseen."""
        self.counts[reason] += 1
        self.doubt(now=now)

    def doubt(self, *, now: float) -> None:
        """Trust starts to fade; more trouble does not make it fade anew."""
        if self.state in ("live", "partial"):
            self.state, self.doubtful_since = "doubtful", now

    def on_restart(self) -> None:
        """The engine was started anew: its cache is empty and its numbers begin again."""
        self.counts["rollback"] += 1
        self.last_sequence, self._waiting_sequence = None, None
        self.state = "starting"
        self._blocks = self._orphans = 0.0
        self._prompts = 0

    def on_dropped(self) -> None:
        """The publisher's blocks were forgotten: what comes from here on is true, not complete."""
        if self.state == "doubtful":
            self.state = "partial"

    def on_cleared(self) -> None:
        """The engine's cache is empty, which makes everything known about it."""
        if self.state in ("partial", "doubtful"):
            self.state = "live"

    def on_prompt(self, *, now: float) -> None:
        """A prompt was answered that must have stored blocks; silence after several is a sign."""
        if not self._prompts:
            self._first_prompt_at = now
        self._prompts += 1
        if (
            self._prompts >= SILENT_AFTER_PROMPTS
            and now - self._first_prompt_at > SILENT_AFTER_SECONDS
        ):
            self._prompts = 0
            self.trouble("silence", now=now)

    def on_blocks(self, *, stored: int, orphans: int) -> None:
        """Blocks of a batch that were stored, and those without a known parent."""
        self._blocks = 0.95 * self._blocks + stored + orphans
        self._orphans = 0.95 * self._orphans + orphans
        if self._blocks > 100 and self._orphans > UNKNOWN_PARENT_SHARE * self._blocks:
            self._blocks = self._orphans = 0.0
            self.counts["unknown-parent"] += 1
            if self.state == "live":
                self.state = "partial"

    # What it means.

    @property
    def is_exact(self) -> bool:
        """What the index says of this publisher is all that it holds."""
        return self.state == "live"

    def trust(self, *, now: float) -> float:
        """0 to 1: how far blocks known from events are believed."""
        if self.state != "doubtful":
            return 1.0
        age = max(0.0, now - self.doubtful_since)
        return float(0.5 ** (1.0 + age / HALF_LIFE_SECONDS))

    def is_spent(self, *, now: float) -> bool:
        """Trust has faded so far that the blocks had better be dropped."""
        return self.trust(now=now) < SPENT_BELOW
