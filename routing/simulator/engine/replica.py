"""One replica in virtual time: continuous batching, chunked prefill, preemption, jumps.

The order of work is vLLM's: sequences that run come first, then waiting ones in order of arrival,
within a step at most `max_num_batched_tokens` tokens. When blocks run out, the youngest sequence
gives its blocks back and is computed again later. While nothing but decoding happens, all steps up
to the next change of the batch are one event; an arrival cuts it at the end of the step that runs.
"""

from collections import deque

from routing.producers.leases import KV_HOLD_SECONDS
from routing.simulator.clock import Clock
from routing.simulator.engine.decoders import Decoders
from routing.simulator.engine.job import Job, State
from routing.simulator.engine.job_blocks import JobBlocks
from routing.simulator.engine.jump import Jump
from routing.simulator.engine.kv_cache import KvCache
from routing.simulator.engine.time_spent import Spent, TimeSpent
from routing.simulator.profiles import Profile


class Replica:
    """`submit` jobs; the clock does the rest through their callbacks."""

    def __init__(
        self,
        profile: Profile,
        clock: Clock,
        *,
        block_tokens: int,
        max_sequences: int,
        tells: bool = False,
    ) -> None:
        """`tells` keeps a list of the blocks that come and go (`cache.stored`, `removed`)."""
        self.profile = profile
        self.clock = clock
        self.block_tokens = block_tokens
        self.max_sequences = max_sequences
        self.cache = KvCache(max(1, profile.kv_tokens // block_tokens), tells=tells)
        self._blocks = JobBlocks(self.cache, block_tokens)
        self.waiting: deque[Job] = deque()
        self.pulling: list[Job] = []
        self.prefilling: list[Job] = []
        self.decoders = Decoders(block_tokens)
        self.held: set[Job] = set()
        self.preemptions = 0
        self.expired_holds = 0
        self.prompt_tokens = self.hit_tokens = 0
        """Of admitted prompts, and what of them was in the cache."""
        self.speed = 1.0
        """Of the profile's; 0 hangs."""
        self.is_up = True
        self.started_at = clock.now
        self._life = 0
        self._time = TimeSpent()
        self._hung_at: float | None = None
        self._chunks: list[tuple[Job, int]] = []
        self._jump: Jump | None = None
        self._version = 0
        self._looked, self._steps_seen = (-1.0, 0), 0

    # What others see.

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        return len(self.prefilling) + len(self.decoders)

    @property
    def kv_usage(self) -> float:
        """Share of blocks with a user at this moment, 0 to 1."""
        cache, jump, grown = self.cache, self._jump, 0
        if jump is not None:
            steps = max(1, self._steps_now())
            grown = self.decoders.blocks_needed(steps) - jump.reserved
        return min(1.0, 1.0 - (cache.available - grown) / cache.total)

    def made(self, job: Job) -> int:
        """Output tokens of a job up to now."""
        if job not in self.decoders.jobs:
            return job.made
        return self.decoders.made(job, self._steps_now())

    def silent_since(self, job: Job) -> float:
        """Since when a job that began to answer has made no token; now, if it makes some."""
        if job not in self.decoders.jobs:
            return job.silent_since
        return self.clock.now if self._hung_at is None else self._hung_at

    def spent(self) -> Spent:
        """What the time since the start went to."""
        jump, now = self._jump, self.clock.now
        return self._time.spent(
            now,
            unbooked=0.0 if jump is None else now - jump.began,
            prefill_share=0.0 if jump is None else jump.prefill_share,
        )

    def _steps_now(self) -> int:
        """Steps of the present jump that are over; many ask at one moment."""
        now = self.clock.now
        if self._looked != (now, self.decoders.step):
            self._looked = (now, self.decoders.step)
            self._steps_seen = 0 if self._jump is None else self._jump.steps_at(now)
        return self._steps_seen

    # What others do.

    def submit(self, job: Job) -> None:
        """Queue a job; the engine's own overhead for a request comes first.

        A job that can never fit, or that comes to a dead process, is lost at once.
        """
        life = self._life
        delay = self.profile.request_overhead_seconds if self.is_up else 0.0
        self.clock.after(delay, lambda now: self._enter(job, life, now))

    def _enter(self, job: Job, life: int, now: float) -> None:
        if job.state is not State.WAITING:
            return
        blocks = -(-(job.prompt_tokens + job.output_tokens) // self.block_tokens)
        if not self.is_up or life != self._life or blocks > self.cache.total:
            job.state = State.ENDED
            job.on_lost(now)
            return
        self.waiting.append(job)
        self._changed(now)

    def pulled(self, job: Job, now: float, *, arrived: bool = True) -> None:
        """The transfer of its prompt's KV is over. The last token is computed here, as vLLM does;
        all that is not cached, when nothing arrived."""
        if job.state is not State.PULLING:
            return
        self.pulling.remove(job)
        if arrived:
            job.computed = job.prompt_tokens - 1
            self._blocks.publish(job)
        job.state = State.PREFILLING
        self.prefilling.append(job)
        self._changed(now)

    def abort(self, job: Job, now: float) -> None:
        """Its client left. Blocks that are held for another replica stay until they expire."""
        if job.state in (State.HELD, State.ENDED):
            return
        self._settle(now)
        self._leave(job)
        self._blocks.free(job)
        job.state = State.ENDED
        self._changed(now)

    def release(self, job: Job, now: float) -> None:
        """The blocks of a held prompt were fetched."""
        if job.state is State.HELD:
            self.held.discard(job)
            job.state = State.ENDED
            self._blocks.free(job)
            self._changed(now)

    def change_speed(self, speed: float, now: float) -> None:
        """From the next step on, durations are the profile's divided by `speed`; 0 hangs."""
        self.speed = speed
        self._changed(now)

    def die(self, now: float) -> None:
        """The process is gone, with its cache; what it had to do is lost."""
        if not self.is_up:
            return
        self._settle(now)
        self.is_up = False
        self._time.down(now)
        self._life += 1
        self._jump = None
        self._version += 1
        lost = [*self.decoders.jobs, *self.prefilling, *self.pulling, *self.waiting]
        for job in self.decoders.jobs:
            job.made = self.decoders.made(job, 0)
        self.waiting.clear()
        self.pulling.clear()
        self.prefilling.clear()
        self.decoders.clear()
        self._chunks = []
        for job in (*lost, *self.held):
            job.state = State.ENDED
        self.held.clear()
        self.cache.clear()
        for job in lost:
            job.on_lost(now)

    def start(self, now: float) -> None:
        """A new process, with an empty cache; one that hung does no more."""
        if not self.is_up:
            self.is_up = True
            self.started_at, self._hung_at = now, None
            self.speed = self.speed or 1.0
            self._time.up(now)

    # Steps.

    def _changed(self, now: float) -> None:
        """Something may join or leave the batch at the end of the step that runs."""
        jump = self._jump
        if jump is None:
            self._step(now)
            return
        steps = jump.steps_begun(now)
        if steps < jump.steps:
            jump.steps = steps
            self._version += 1
            jump.version = self._version
            self._await(jump)

    def _settle(self, now: float) -> None:
        """Book the steps that are over, so that a job may leave in the middle of a jump."""
        jump = self._jump
        over = 0 if jump is None or self._chunks else jump.steps_at(now)
        if jump is None or not over:
            return
        self._book(jump, over)
        jump.began += jump.seconds(over)
        jump.first += over * jump.growth
        jump.steps -= over
        jump.reserved = 0

    def _await(self, jump: Jump) -> None:
        version = jump.version
        ends = max(jump.ends, self.clock.now)
        self.clock.at(ends, lambda now: self._end_jump(now, version))

    def _step(self, now: float) -> None:
        if self.speed <= 0:
            self._hung_at = now if self._hung_at is None else self._hung_at
            return
        self._hung_at = None
        reserved = self._make_room_to_decode()
        self._plan_prompts(now)
        if not self._chunks and not self.decoders.jobs:
            if len(self.prefilling) > 1:
                # Half-computed prompts hold all blocks: only a victim lets the others go on.
                self._preempt(self.prefilling[-1], now)
                self._step(now)
            return
        self._jump = jump = self._next_jump(reserved, now)
        self._await(jump)

    def _next_jump(self, reserved: int, now: float) -> Jump:
        profile, count, steps = self.profile, len(self.decoders), 1
        decode = profile.decode_seconds(count, self.decoders.context)
        prompts = sum(profile.prefill_seconds(tokens, job.computed) for job, tokens in self._chunks)
        share = prompts / (decode + prompts) if count else 1.0
        if not self._chunks:
            steps = self.decoders.steps_within(self.cache.available + reserved)
        self._version += 1
        return Jump(
            self._version,
            now,
            steps,
            (decode + prompts) / self.speed,
            profile.step_seconds_per_context_token * count / self.speed,
            share,
            reserved,
        )

    def _end_jump(self, now: float, version: int) -> None:
        jump = self._jump
        if jump is None or jump.version != version:
            return
        self._book(jump, jump.steps)
        self._jump = None
        ended = self.decoders.take_ended()
        for job in ended:
            self._finish(job)
        answered = self._finish_chunks()
        for job in ended:
            job.on_end(now)
        for job in answered:
            if job.made == 1:
                job.on_first(now)
            if job.made >= job.output_tokens:
                job.on_end(now)
        if self._jump is None:
            self._step(now)

    def _book(self, jump: Jump, steps: int) -> None:
        self._time.book(jump.seconds(steps), jump.prefill_share)
        if not self.cache.allocate(self.decoders.blocks_needed(steps) - jump.reserved):
            raise RuntimeError("A step took more blocks than there are.")
        self.decoders.advance(steps)

    def _make_room_to_decode(self) -> int:
        """Blocks taken for the next token of each sequence; the youngest may have to leave."""
        while not self.cache.allocate(needed := self.decoders.blocks_needed(1)):
            victim = self.prefilling[-1] if self.prefilling else next(reversed(self.decoders.jobs))
            self._preempt(victim, self.clock.now)
        return needed

    def _finish(self, job: Job) -> None:
        if not job.hold:
            job.state = State.ENDED
            self._blocks.free(job)
            return
        job.state = State.HELD
        self.held.add(job)
        self.clock.after(KV_HOLD_SECONDS, lambda now: self._expire(job, now))

    def _expire(self, job: Job, now: float) -> None:
        if job.state is State.HELD:
            self.expired_holds += 1
            self.release(job, now)

    # Prompts.

    def _plan_prompts(self, now: float) -> None:
        self._chunks = []
        budget = self.profile.max_num_batched_tokens - len(self.decoders)
        for job in self.prefilling:
            tokens = min(budget, job.target - job.computed)
            if tokens <= 0 or not self._blocks.cover(job, job.computed + tokens):
                break
            self._chunks.append((job, tokens))
            budget -= tokens
        while self.waiting and budget > 0:
            if self.running + len(self.pulling) >= self.max_sequences:
                return
            job = self.waiting[0]
            is_pulled = job.on_admitted is not None and job.admitted_at is None
            tokens = self._admit(job, budget, now, is_pulled=is_pulled)
            if not tokens:
                return
            self.waiting.popleft()
            if is_pulled:
                self._start_pull(job, now)
            else:
                job.state = State.PREFILLING
                self.prefilling.append(job)
                self._chunks.append((job, tokens))
                budget -= tokens

    def _admit(self, job: Job, budget: int, now: float, *, is_pulled: bool) -> int:
        """Take the cached start and room for a first chunk; its tokens, 0 if there is no room."""
        self._blocks.take_cached(job, job.target)
        tokens = job.target - job.computed
        if not is_pulled:
            tokens = min(budget, tokens)
        if not self._blocks.cover(job, job.computed + tokens):
            self._blocks.free(job)
            return 0
        if job.admitted_at is None:
            job.admitted_at = now
            job.cached = min(job.computed, job.prompt_tokens)
            self.prompt_tokens += job.prompt_tokens
            self.hit_tokens += job.cached
        return tokens

    def _start_pull(self, job: Job, now: float) -> None:
        job.state = State.PULLING
        self.pulling.append(job)
        if job.on_admitted is not None:
            job.on_admitted(now)

    def _finish_chunks(self) -> list[Job]:
        """The prompt chunks of the step are computed; returns the jobs that got a token by it."""
        answered = []
        for job, tokens in self._chunks:
            if job.state is not State.PREFILLING:
                continue
            job.computed += tokens
            self._blocks.publish(job)
            if job.computed < job.target:
                continue
            self.prefilling.remove(job)
            if job.made + 1 < job.output_tokens:
                self.decoders.join(job)
            else:
                job.made += 1
                self._finish(job)
            answered.append(job)
        self._chunks = []
        return answered

    # Leaving.

    def _preempt(self, job: Job, now: float) -> None:
        self._leave(job)
        self._blocks.free(job)
        job.state = State.WAITING
        job.silent_since = now
        job.preempted += 1
        self.preemptions += 1
        self.waiting.appendleft(job)

    def _leave(self, job: Job) -> None:
        if job.state is State.DECODING:
            self.decoders.part(job)
        elif job.state is State.PREFILLING:
            self.prefilling.remove(job)
        elif job.state is State.PULLING:
            self.pulling.remove(job)
        elif job in self.waiting:
            self.waiting.remove(job)
