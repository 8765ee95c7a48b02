"""An engine in virtual time: continuous batching, chunked prefill, KV blocks, preemption, holds.

Pure: the caller gives the time, sleeps as long as `begin_step` says, then calls `finish_step`. The
order of work is vLLM's: sequences that run first, then waiting ones, first come first served;
within a step at most `batched_tokens` tokens. When blocks run out, the youngest sequence is
preempted and computed again later.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import xxhash

from routing.simulator.profiles import Profile
from routing.testbed import cache, events
from routing.testbed.sequence import Sequence, State
from routing.testbed.stats import Stats


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of an engine."""

    block_size: int
    blocks: int
    sequences: int
    batched_tokens: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Blocks that a finished prefill keeps for a decode engine until `expires`."""

    blocks: list[int]
    tokens: int
    expires: float


class EngineModel:
    """State of one engine. Every method is cheap; none waits."""

    def __init__(
        self, profile: Profile, limits: Limits, *, log: "events.EventLog | None" = None
    ) -> None:
        self.profile = profile
        self.limits = limits
        self.stats = Stats()
        self.pool = cache.BlockPool(limits.blocks, record_removals=log is not None)
        self.log = log
        self.waiting: deque[Sequence] = deque()
        self.pulling: list[Sequence] = []
        self.prefilling: list[Sequence] = []
        self.decoding: list[Sequence] = []
        self.held: dict[str, Hold] = {}
        self.to_pull: list[Sequence] = []
        """Sequences whose transfer the caller starts; it empties the list."""
        self._context = 0
        self._short: list[Sequence] = []
        """Decoding sequences whose last block is full."""
        self._chunks: list[tuple[Sequence, int]] = []

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        return len(self.decoding) + len(self.prefilling)

    def add(self, sequence: Sequence) -> None:
        """Queue a request."""
        self.waiting.append(sequence)

    def begin_step(self, now: float) -> float | None:
        """Choose the work of a step; its length in seconds, or None when there is nothing to do."""
        self._extend_decoders()
        budget = self.limits.batched_tokens - len(self.decoding)
        self._chunks = []
        budget = self._continue_prefills(budget)
        self._admit(budget, now)
        if not self._chunks and not self.decoding:
            if self._make_progress_possible():
                return self.begin_step(now)
            return None
        return self._step_seconds()

    def finish_step(self, now: float) -> list[Sequence]:
        """Emit the tokens of the step; the sequences that got one, finished ones included."""
        produced = self._decode(now)
        computed = len(produced)
        for sequence, count in self._chunks:
            if sequence.state is not State.PREFILLING:
                continue
            sequence.computed += count
            computed += count
            self._register(sequence)
            if sequence.computed == len(sequence.tokens):
                self._first_token(sequence, now)
                produced.append(sequence)
        self._chunks = []
        if computed:
            self.stats.step_tokens.observe(float(computed))
        self._note_removals()
        return produced

    def abort(self, sequence: Sequence, now: float) -> None:
        """End a sequence whose client left. A finished one is left alone."""
        if sequence.state is not State.FINISHED:
            self._finish(sequence, "abort", now)

    def fail(self, sequence: Sequence, now: float) -> None:
        """End a sequence that the engine could not serve."""
        if sequence.state is not State.FINISHED:
            self._finish(sequence, "error", now)

    def pull_finished(self, sequence: Sequence, *, arrived: bool) -> None:
        """The transfer of a prompt's KV ended; without it the prompt is computed here."""
        if sequence.state is not State.PULLING:
            return
        self.pulling.remove(sequence)
        sequence.remote = None
        sequence.computed = sequence.local_hit
        if arrived:
            sequence.external = sequence.prompt_tokens - sequence.local_hit
            self.stats.external_hits += sequence.external
            # As vLLM does: the last token is computed again, to have its logits.
            sequence.computed = sequence.prompt_tokens - 1
            self._register(sequence)
        else:
            self.stats.failed_transfers += 1
        sequence.state = State.PREFILLING
        self.prefilling.append(sequence)

    def release(self, request_id: str) -> bool:
        """Free what a prefill held, because it was pulled. False when it is not held any more."""
        hold = self.held.pop(request_id, None)
        if hold is None:
            self.stats.late_notifications += 1
            return False
        self.pool.free(hold.blocks)
        return True

    def expire_holds(self, now: float) -> None:
        """Free holds that nobody pulled in time."""
        for request_id in [key for key, hold in self.held.items() if hold.expires <= now]:
            self.pool.free(self.held.pop(request_id).blocks)
            self.stats.expired_holds += 1

    def hold(self, request_id: str, sequence: Sequence, *, expires: float) -> list[int]:
        """Keep the prompt's blocks of a sequence that finished with `hold` set; their ids."""
        self.held[request_id] = Hold(sequence.blocks, sequence.prompt_tokens, expires)
        blocks, sequence.blocks = sequence.blocks, []
        return blocks

    def reset_cache(self) -> None:
        """Forget all cached blocks; running sequences keep theirs."""
        self.pool.clear()
        if self.log is not None:
            self.log.cleared()

    def _step_seconds(self) -> float:
        seconds = self.profile.decode_seconds(len(self.decoding), self._context)
        for sequence, count in self._chunks:
            seconds += self.profile.prefill_seconds(count, sequence.computed)
        return seconds

    def _extend_decoders(self) -> None:
        """Give each sequence at the end of its last block another one, preempting if needed."""
        for sequence in self._short:
            while sequence.state is State.DECODING and not self._cover(
                sequence, len(sequence.tokens)
            ):
                self._preempt_youngest()
        self._short = []

    def _continue_prefills(self, budget: int) -> int:
        for sequence in self.prefilling:
            if budget <= 0:
                break
            count = min(budget, len(sequence.tokens) - sequence.computed)
            if not self._cover(sequence, sequence.computed + count):
                break
            self._chunks.append((sequence, count))
            budget -= count
        return budget

    def _admit(self, budget: int, now: float) -> None:
        while self.waiting and budget > 0:
            if self.running + len(self.pulling) >= self.limits.sequences:
                return
            sequence = self.waiting[0]
            pulled = sequence.remote is not None
            hit = self._take_cached(sequence)
            left = len(sequence.tokens) - hit
            count = left if pulled else min(budget, left)
            if not self._cover(sequence, hit + count):
                self._drop_blocks(sequence)
                return
            self.waiting.popleft()
            self._note_admission(sequence, hit, now)
            if pulled:
                sequence.state = State.PULLING
                self.pulling.append(sequence)
                self.to_pull.append(sequence)
                continue
            sequence.state = State.PREFILLING
            self.prefilling.append(sequence)
            self._chunks.append((sequence, count))
            budget -= count

    def _take_cached(self, sequence: Sequence) -> int:
        """Take the cached start of the sequence; tokens found, never all: the last is computed."""
        limit = (len(sequence.tokens) - 1) // self.limits.block_size
        blocks = self.pool.match(sequence.keys, limit)
        self.pool.take(blocks)
        sequence.blocks = blocks
        sequence.registered = len(blocks)
        sequence.computed = len(blocks) * self.limits.block_size
        return sequence.computed

    def _note_admission(self, sequence: Sequence, hit: int, now: float) -> None:
        if sequence.scheduled is not None:
            return
        sequence.scheduled = now
        sequence.local_hit = min(hit, sequence.prompt_tokens)
        self.stats.prefix_queries += sequence.prompt_tokens
        self.stats.prefix_hits += sequence.local_hit
        self.stats.external_queries += sequence.prompt_tokens - sequence.local_hit

    def _cover(self, sequence: Sequence, length: int) -> bool:
        """Make sure that the blocks hold `length` tokens; False when there are not enough."""
        missing = -(-length // self.limits.block_size) - len(sequence.blocks)
        if missing <= 0:
            return True
        blocks = self.pool.allocate(missing)
        if blocks is None:
            return False
        sequence.blocks += blocks
        return True

    def _make_progress_possible(self) -> bool:
        """Preempt when half-computed prompts hold all blocks. False when only waiting helps."""
        if len(self.prefilling) > 1:
            self._preempt(self.prefilling[-1])
            return True
        return False

    def _preempt_youngest(self) -> None:
        self._preempt(self.prefilling[-1] if self.prefilling else self.decoding[-1])

    def _preempt(self, sequence: Sequence) -> None:
        self._leave(sequence)
        self._drop_blocks(sequence)
        sequence.preempted += 1
        sequence.state = State.WAITING
        self.stats.preemptions += 1
        self.waiting.appendleft(sequence)

    def _drop_blocks(self, sequence: Sequence) -> None:
        self.pool.free(sequence.blocks)
        sequence.blocks = []
        sequence.registered = 0
        sequence.computed = 0

    def _leave(self, sequence: Sequence) -> None:
        if sequence.state is State.DECODING:
            self.decoding.remove(sequence)
            self._context -= len(sequence.tokens)
        elif sequence.state is State.PREFILLING:
            self.prefilling.remove(sequence)
        elif sequence.state is State.PULLING:
            self.pulling.remove(sequence)
        elif sequence.state is State.WAITING:
            self.waiting.remove(sequence)

    def _decode(self, now: float) -> list[Sequence]:
        decoding = list(self.decoding)
        if not decoding:
            return decoding
        block_size, finished = self.limits.block_size, []
        self._context += len(decoding)
        # Everybody in the batch got its token before at the end of the same step.
        self.stats.inter_token.observe(now - decoding[0].last, len(decoding))
        for sequence in decoding:
            sequence.computed += 1
            sequence.emit()
            sequence.last = now
            if sequence.computed % block_size == 0:
                self._register(sequence)
                self._short.append(sequence)
            if sequence.output >= sequence.stop_at:
                finished.append(sequence)
        self.stats.generation += len(decoding)
        for sequence in finished:
            self._complete(sequence, now)
        return decoding

    def _first_token(self, sequence: Sequence, now: float) -> None:
        """A prompt (or, after a preemption, prompt and answer) is computed: emit a token."""
        stats = self.stats
        self.prefilling.remove(sequence)
        sequence.state = State.DECODING
        if sequence.max_output:
            stats.generation += 1
            sequence.emit()
        self.decoding.append(sequence)
        self._context += len(sequence.tokens)
        if sequence.computed % self.limits.block_size == 0:
            self._short.append(sequence)
        if sequence.first is None:
            sequence.first = now
            stats.prompt += sequence.prompt_tokens
            stats.local_cache_hit += sequence.local_hit
            stats.external_transfer += sequence.external
            stats.first_token.observe(max(0.0, now - sequence.arrived))
        else:
            stats.inter_token.observe(now - sequence.last)
        sequence.last = now
        if sequence.output >= sequence.stop_at:
            self._complete(sequence, now)

    def _complete(self, sequence: Sequence, now: float) -> None:
        self._finish(sequence, "stop" if sequence.ends_by_itself else "length", now)

    def _finish(self, sequence: Sequence, reason: str, now: float) -> None:
        self._leave(sequence)
        sequence.state = State.FINISHED
        sequence.finish_reason = reason
        self.stats.finished[reason] += 1
        if sequence.hold and reason in ("length", "stop"):
            # The caller takes the prompt's blocks over with `hold`.
            keep = -(-sequence.prompt_tokens // self.limits.block_size)
            self.pool.free(sequence.blocks[keep:])
            sequence.blocks = sequence.blocks[:keep]
        else:
            self.pool.free(sequence.blocks)
            sequence.blocks = []
        if reason in ("length", "stop"):
            self._observe_request(sequence, now)

    def _observe_request(self, sequence: Sequence, now: float) -> None:
        stats, first = self.stats, sequence.first or now
        scheduled = sequence.scheduled or now
        stats.request_prompt.observe(float(sequence.prompt_tokens))
        stats.request_generation.observe(float(sequence.output))
        stats.max_generation.observe(float(sequence.output))
        stats.params_n.observe(1.0)
        stats.params_max_tokens.observe(float(sequence.max_output))
        stats.e2e.observe(now - sequence.arrived)
        # A late step is booked at the time it was due, which may lie before the arrival.
        stats.queue.observe(max(0.0, scheduled - sequence.arrived))
        stats.inference.observe(now - scheduled)
        stats.prefill.observe(first - scheduled)
        stats.decode.observe(now - first)
        stats.request_preemptions.observe(float(sequence.preempted))
        stats.prefill_computed.observe(float(sequence.prompt_tokens - sequence.cached))
        if sequence.output > 1:
            stats.per_output_token.observe((now - first) / (sequence.output - 1))

    def _register(self, sequence: Sequence) -> None:
        """Offer the filled blocks of a sequence to the prefix cache and tell who listens."""
        full = sequence.computed // self.limits.block_size
        if full <= sequence.registered:
            return
        self._extend_keys(sequence, full)
        stored = [
            index
            for index in range(sequence.registered, full)
            if self.pool.register(sequence.blocks[index], sequence.keys[index])
        ]
        sequence.registered = full
        if self.log is not None and stored:
            # Removals made room for these blocks, so they come first.
            self._note_removals()
            self.log.stored(sequence, stored, self.limits.block_size)

    def _extend_keys(self, sequence: Sequence, full: int) -> None:
        size = self.limits.block_size
        while len(sequence.keys) < full:
            start = len(sequence.keys) * size
            raw = sequence.tokens[start : start + size].tobytes()
            parent = sequence.keys[-1] if sequence.keys else sequence.root
            sequence.keys.append(xxhash.xxh3_64_intdigest(raw, seed=parent))

    def _note_removals(self) -> None:
        if self.log is not None and self.pool.removed:
            self.log.removed(self.pool.removed)
            self.pool.removed = []


def run_until_idle(model: EngineModel, now: float) -> tuple[float, list[Sequence]]:
    """Step a model until it has nothing to do; the time then, and what finished, in order."""
    finished: list[Sequence] = []
    while (seconds := model.begin_step(now)) is not None:
        now += seconds
        finished.extend(_finished(model.finish_step(now)))
    return now, finished


def _finished(sequences: Iterable[Sequence]) -> list[Sequence]:
    return [sequence for sequence in sequences if sequence.finish_reason is not None]
