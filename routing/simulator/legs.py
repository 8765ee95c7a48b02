"""The jobs of one attempt: a whole answer at one replica, or a prompt here and its answer there.

Pairs are those of engines that work in turn (NIXL): the prompt is computed, the destination finds
room for it, fetches what it does not hold, and answers.
"""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from routing.core.lease import Lease
from routing.pool.router import PoolRouter
from routing.producers.breakers import FailureKind
from routing.simulator.clock import Clock
from routing.simulator.engine.job import Job, State
from routing.simulator.engine.replica import Replica
from routing.simulator.network import Links

Wait = Literal["first", "transfer", "stall"]


class Ticket:
    """A prompt that is computed and held for whoever fetches it."""

    __slots__ = ("job", "source", "valid_until")

    def __init__(self, job: Job, source: str, valid_until: float) -> None:
        self.job, self.source, self.valid_until = job, source, valid_until


class Site(Protocol):
    """Where legs run."""

    clock: Clock
    router: PoolRouter
    replicas: Mapping[str, Replica]
    links: Links


class Owner(Protocol):
    """Who asked for the answer."""

    def make_job(self, *, is_leg: bool) -> Job:
        """A job of this attempt: the whole answer, or a prompt to be held."""

    def waits(self, what: Wait) -> None:
        """Time runs until the next thing comes."""

    def prompt_computed(self, job: Job) -> None:
        """The prefill end has it."""

    def answer_begun(self, now: float) -> None:
        """The first token came."""

    def answered(self, now: float) -> None:
        """The last one, too."""

    def broke(self, endpoint: str, kind: FailureKind, now: float) -> None:
        """A leg failed."""


class Legs:
    """`start` them; the owner hears of them until `drop`."""

    def __init__(self, site: Site, owner: Owner, lease: Lease) -> None:
        self._site, self._owner, self.lease = site, owner, lease
        self.destination = lease.destination.spec.id
        """Where the answer is made."""
        self._replica = site.replicas[self.destination]
        self.answer = owner.make_job(is_leg=False)
        self.answer.on_first = self._on_first
        self.answer.on_end = self._on_end
        self.answer.on_lost = self._lost_at(self.destination)
        self.prompt: Job | None = None
        self.has_prompt = False
        """The prefill end is done."""
        self.has_begun = False
        """The client has a token of it."""
        self.first_at: float | None = None
        """When the engine made the first one."""
        self._counted = 0
        self._is_over = False

    @property
    def waits_for(self) -> str:
        """Whose turn it is."""
        is_at_prefill = self.lease.prefill is not None and not self.has_prompt
        return self.lease.prompt_instance.spec.id if is_at_prefill else self.destination

    @property
    def made(self) -> int:
        """Output tokens of this attempt."""
        return self._replica.made(self.answer)

    def start(self, ticket: Ticket | None) -> None:
        """Submit; with a ticket the prompt is there already."""
        if self.lease.prefill is None:
            self._owner.waits("first")
            self._submit_answer()
        elif ticket is None:
            self.prompt = self._owner.make_job(is_leg=True)
            source = self.lease.prompt_instance.spec.id
            self.prompt.on_end = self._on_prompt
            self.prompt.on_lost = self._lost_at(source)
            self._owner.waits("first")
            self._site.replicas[source].submit(self.prompt)
        else:
            self.prompt = ticket.job
            self._answer_after_prompt()

    def drop(self, now: float) -> None:
        """Nobody waits for it any more. A prompt that is computed stays held."""
        if self._is_over:
            return
        self._is_over = True
        if self.prompt is not None:
            self._site.replicas[self.lease.prompt_instance.spec.id].abort(self.prompt, now)
        self._replica.abort(self.answer, now)

    def silent_since(self) -> float:
        """Since when the answer makes no token, after its first."""
        return self._replica.silent_since(self.answer)

    def count(self, now: float) -> None:
        """Tell the router of the tokens since the last time."""
        if self.has_begun:
            self._count(self._replica.made(self.answer), now)

    def _count(self, made: int, now: float) -> None:
        # The first token was told by `first_token`.
        fresh = made - 1 - self._counted
        if fresh > 0:
            self._counted += fresh
            self._site.router.tokens(self.lease, fresh, now=now)

    # The prefill leg.

    def _on_prompt(self, now: float) -> None:
        job = self.prompt
        if self._is_over or job is None:
            return
        self._owner.prompt_computed(job)
        self._site.router.prefill_done(
            self.lease, now=now, prompt_tokens=job.prompt_tokens, cached_tokens=job.cached
        )
        self._answer_after_prompt()

    def _answer_after_prompt(self) -> None:
        self.has_prompt = True
        self.answer.on_admitted = self._fetch
        self._owner.waits("transfer")
        self._submit_answer()

    def _fetch(self, now: float) -> None:
        """The destination has room: it pulls what it does not hold itself."""
        source, prompt, answer = self.lease.prompt_instance.spec.id, self.prompt, self.answer
        replicas = self._site.replicas
        profile = self._replica.profile
        missing = answer.prompt_tokens - answer.computed
        ends = self._site.links.move(
            source,
            self.destination,
            size=float(missing * profile.kv_bytes_per_token),
            bytes_per_second=profile.link_bytes_per_second,
            setup_seconds=profile.transfer_setup_seconds,
            now=now,
        )

        def end(when: float) -> None:
            is_there = prompt is not None and prompt.state is State.HELD
            if is_there and prompt is not None:
                replicas[source].release(prompt, when)
            self._replica.pulled(answer, when, arrived=is_there)

        self._site.clock.at(ends, end)

    # The answer.

    def _submit_answer(self) -> None:
        self._replica.submit(self.answer)

    def _on_first(self, now: float) -> None:
        if self._is_over:
            return
        self.first_at = now
        if not self.lease.request.parsed.stream:
            return
        self.has_begun = True
        self._site.router.first_token(self.lease, now=now)
        self._owner.answer_begun(now)
        self._owner.waits("stall")

    def _on_end(self, now: float) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self.has_begun:
            self._count(self.answer.output_tokens, now)
        self._owner.answered(now)

    def _lost_at(self, endpoint: str) -> Callable[[float], None]:
        def lost(now: float) -> None:
            if self._is_over:
                return
            # Before the first byte a kept connection is only stale; the next attempt finds nobody.
            self._owner.broke(endpoint, "status" if self.has_begun else "connect", now)

        return lost
