"""One request on its way: into the router, attempts, end. The rules are those of the server.

Before the first token another endpoint is tried: a prefill endpoint that started nothing is
replaced, any other prefill failure computes the prompt where it is decoded, and a decode endpoint
that started nothing hands its computed prompt on. After the first token a stream goes on elsewhere
where the pool lets it.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from routing.core.decision import Decision, Refusal
from routing.core.request import InferenceRequest
from routing.pool import retries
from routing.pool.retries import UNSTREAMED_SECONDS_PER_TOKEN, UNSTREAMED_TOKENS
from routing.pool.router import Outcome
from routing.producers.breakers import FailureKind
from routing.producers.leases import KV_HOLD_SECONDS
from routing.simulator.engine.job import Job
from routing.simulator.legs import Legs, Site, Ticket, Wait
from routing.simulator.patience import Patience
from routing.simulator.requests import Course
from routing.simulator.scenario import Surroundings
from routing.simulator.waiting_room import WaitingRoom

FAILED, PREFILL_UNAVAILABLE = "failed", "prefill-unavailable"
_PASSING = (429, 503)
"""Statuses of refusals that a broken stream waits out."""


class Tower(Site, Protocol):
    """What all requests of a run share: the router, the replicas, time, and who watches them."""

    around: Surroundings
    room: WaitingRoom
    patience: Mapping[Wait, Patience]

    def decide(
        self, request: InferenceRequest, *, now: float, exclude: frozenset[str] = frozenset()
    ) -> Decision:
        """The router's choice under the scenario's policy."""

    def over(self, flight: "Flight", now: float) -> None:
        """A request has ended, in whatever way."""


class Flight:
    """See the module."""

    def __init__(self, tower: Tower, course: Course, request: InferenceRequest) -> None:
        self._tower, self.course, self.request = tower, course, request
        self._left = tower.router.document.limits.attempts
        self._excluded: frozenset[str] = frozenset()
        self._legs: Legs | None = None
        self._last: Decision | None = None
        self._ticket: Ticket | None = None
        self._prefill_failures = 0
        self._computes_locally = False
        self._carried = 0
        """Tokens that the client had when the attempt under way began."""
        self._breaks = 0
        self._broken_at: float | None = None
        """Since when nobody goes on with a stream that has begun."""
        self._pause = retries.FIRST_PAUSE_SECONDS

    @property
    def is_open(self) -> bool:
        """It has not ended."""
        return self.course.outcome == "open"

    # Into the router.

    def enter(self, now: float) -> None:
        """The router has read it: decide, queue or refuse."""
        if not self.is_open:
            return
        queue = self._tower.router.queue
        decision = self._tower.decide(self.request, now=now)
        refusal = decision.refusal
        if (queue.is_open or len(queue)) and self._tower.room.takes(self, decision, now):
            return
        if refusal is None:
            queue.passed(self.request)
            queue.reserve(self.request, now=now)
        self.go(decision, now)

    def go(self, decision: Decision, now: float) -> None:
        """The decision for the next attempt, to be used at once."""
        course, refusal = self.course, decision.refusal
        course.attempts += 1
        self._left -= 1
        if refusal is not None:
            has_failed = course.attempts > 1
            self._end(FAILED if has_failed else refusal.code, now)
            return
        if self._computes_locally and self._broken_at is None and self._is_too_long(decision):
            self._end(PREFILL_UNAVAILABLE, now)
            return
        self._last = decision
        course.destination, course.prefill = decision.destination, decision.prefill
        if course.decided_at is None:
            course.decided_at = now
        if self._broken_at is None:
            course.predicted_ttft = decision.predicted.ttft_seconds
            course.predicted_tpot = decision.predicted.tpot_seconds
        lease = self._tower.router.begin(self.request, decision, now=now)
        ticket = self._ticket if decision.prefill is not None else None
        if ticket is not None:
            self._tower.router.prompt_is_there(lease, now=now)
        self._legs = Legs(self._tower, self, lease)
        self._legs.start(ticket)

    def refuse(self, refusal: Refusal, now: float) -> None:
        """It waited in vain."""
        self._end(refusal.code, now)

    def _is_too_long(self, decision: Decision) -> bool:
        """Never compute a prompt in the wrong place silently when it is long."""
        most = self._tower.router.document.disaggregation.local_prefill_tokens
        return most is not None and decision.predicted.uncached_tokens > most

    # What legs ask and tell.

    def make_job(self, *, is_leg: bool) -> Job:
        """See `Owner`."""
        arrival = self.course.arrival
        return Job(
            number=self.course.number,
            keys=list(arrival.prompt.keys),
            prompt_tokens=arrival.prompt.tokens + self._carried,
            output_tokens=1 if is_leg else arrival.output_tokens - self._carried,
            answer_keys=arrival.answer_keys,
            hold=is_leg,
        )

    def waits(self, what: Wait) -> None:
        """See `Owner`."""
        parsed = self.request.parsed
        longer = 0.0
        if not parsed.stream:
            # A whole answer may take as long as its first token plus some time for each token.
            longer = (parsed.max_tokens or UNSTREAMED_TOKENS) * UNSTREAMED_SECONDS_PER_TOKEN
        patience = self._tower.patience[what]
        patience.start(self.course.number, self.course.attempts, longer=longer)

    def prompt_computed(self, job: Job) -> None:
        """See `Owner`."""
        if not self._carried:
            self.course.cached_tokens = job.cached
        source = self.course.prefill
        if source is not None:
            until = self._tower.clock.now + KV_HOLD_SECONDS - retries.TICKET_MARGIN_SECONDS
            self._ticket = Ticket(job, source, until)

    def answer_begun(self, now: float) -> None:
        """See `Owner`."""
        self._broken_at, self._ticket = None, None
        if self._legs is not None and self.course.first_token_at is None:
            self._note_first(self._legs, now)

    def _note_first(self, legs: Legs, at: float | None) -> None:
        self.course.first_token_at = at
        if legs.lease.prefill is None:
            self.course.cached_tokens = legs.answer.cached

    def answered(self, now: float) -> None:
        """See `Owner`."""
        legs = self._legs
        if legs is None:
            return
        job = legs.answer
        self.course.output_tokens = self._carried + job.output_tokens
        if not legs.has_begun:
            self._note_first(legs, legs.first_at)
        self._tower.router.end(
            legs.lease,
            now=now,
            outcome="ok",
            prompt_tokens=job.prompt_tokens,
            cached_tokens=job.cached if legs.lease.prefill is None else None,
            completion_tokens=job.output_tokens,
        )
        self._close_legs(now)
        self._end("ok", now)

    def count(self, now: float) -> None:
        """Tell the router how far the stream is."""
        if self._legs is not None:
            self._legs.count(now)

    # Failures.

    def late(self, what: Wait, attempt: int, now: float) -> None:
        """A deadline of an attempt has passed; nothing may be wrong."""
        legs = self._legs
        if legs is None or attempt != self.course.attempts:
            return
        if what == "stall":
            self._look_for_stall(legs, attempt, now)
        elif not legs.has_begun and legs.has_prompt is (what == "transfer"):
            self.broke(legs.waits_for, "timeout", now)

    def _look_for_stall(self, legs: Legs, attempt: int, now: float) -> None:
        since = legs.silent_since()
        until = since + self._tower.router.document.limits.stall_timeout_seconds
        if since >= now:
            self.waits("stall")
        elif now >= until:
            self.broke(legs.destination, "stall", now)
        else:
            self._tower.clock.at(until, lambda when: self.late("stall", attempt, when))

    def broke(self, endpoint: str, kind: FailureKind, now: float) -> None:
        """See `Owner`."""
        legs = self._legs
        if legs is None:
            return
        self._blame(legs, endpoint, kind, now)
        self._excluded |= {endpoint}
        if legs.has_begun:
            self._break_stream(legs, now)
        else:
            self._note_failure(legs, endpoint, kind)
            self._drop("error", now)
            if self._is_overdue(now):
                self._left = 0
        if not self.is_open:
            return
        if self._left:
            pause = self._tower.around.connect_failure_seconds if kind == "connect" else 0.0
            self._tower.clock.after(pause, self._again)
        else:
            self._end(FAILED, now)

    def _blame(self, legs: Legs, endpoint: str, kind: FailureKind, now: float) -> None:
        """The pair is blamed between a good prefill and the first token."""
        is_pair = legs.has_prompt and not legs.has_begun and kind != "connect"
        self._tower.router.failed(
            endpoint,
            "kv_transfer" if is_pair else kind,
            now=now,
            prefill_id=self.course.prefill if is_pair else None,
        )

    def _note_failure(self, legs: Legs, endpoint: str, kind: FailureKind) -> None:
        """What the next attempt must know of this one."""
        if legs.lease.prefill is not None and endpoint == legs.lease.prefill.spec.id:
            self._ticket = None
            self._prefill_failures += 1
            self._computes_locally |= kind not in ("connect", "kv_transfer")
            self._computes_locally |= self._prefill_failures >= retries.PREFILL_FAILURES
        elif kind != "connect":
            # The destination may have begun to fetch.
            self._ticket = None

    def _break_stream(self, legs: Legs, now: float) -> None:
        """After the first token: go on elsewhere, or end."""
        limits = self._tower.router.document.limits
        came = self._carried + legs.made
        self.course.output_tokens = came
        self._ticket = None
        self._drop("error", now)
        if not limits.streams_continue or self._breaks >= retries.MOST_BREAKS:
            self._end(FAILED, now)
            return
        self._breaks += 1
        self._broken_at, self._pause = now, retries.FIRST_PAUSE_SECONDS
        self._left = max(self._left, limits.attempts - 1, 1)
        self._ask_for_rest(came)

    def _ask_for_rest(self, came: int) -> None:
        before, parsed = self.request, self.request.parsed
        more, most = came - self._carried, parsed.max_tokens
        rest = msgspec.structs.replace(
            parsed,
            prompt_tokens=parsed.prompt_tokens + more,
            max_tokens=None if most is None else max(1, most - more),
        )
        self.request = msgspec.structs.replace(before, parsed=rest)
        self._tower.router.queue.follow(self.request, of=before)
        self._carried = came

    def _is_overdue(self, now: float) -> bool:
        """No retry begins later than this: one endpoint may use up the time for a first token."""
        if self._broken_at is not None:
            return False
        longest = self._tower.router.document.limits.first_token_timeout_seconds
        return now - self.request.arrived_at > retries.RETRY_SHARE * longest

    def _again(self, now: float) -> None:
        """The next attempt; a broken stream waits a while for a place to go on."""
        if not self.is_open:
            return
        decision = self._handed_on(now)
        if decision is None:
            self._computes_locally |= self._left == 1 and self._prefill_failures > 0
            decision = self._tower.decide(self.request, now=now, exclude=self._out())
            refusal, since = decision.refusal, self._broken_at
            is_passing = refusal is not None and refusal.status in _PASSING
            if is_passing and since is not None and now - since <= retries.PATIENCE_SECONDS:
                pause, self._pause = self._pause, 2 * self._pause
                self._pause = min(self._pause, retries.LONGEST_PAUSE_SECONDS)
                self._tower.clock.after(pause, self._again)
                return
        self.go(decision, now)

    def _handed_on(self, now: float) -> Decision | None:
        """Another destination for a prompt that is computed already."""
        ticket, last, self._ticket = self._ticket, self._last, None
        if ticket is None or last is None or now > ticket.valid_until:
            return None
        decision = self._tower.router.hand_on(last, exclude=self._excluded, now=now)
        if decision is not None:
            self._ticket = ticket
        return decision

    def _out(self) -> frozenset[str]:
        """Endpoints that this request must not try (again)."""
        if not self._computes_locally:
            return self._excluded
        specs = self._tower.router.document.endpoints
        return self._excluded | {spec.id for spec in specs if spec.role == "prefill"}

    # Ends.

    def give_up(self, now: float) -> None:
        """The client's time is over."""
        self._drop("aborted", now)
        self._tower.room.left(self)
        self._end("timeout", now)

    def cut(self, outcome: str, now: float) -> None:
        """Somebody else ends it: the router restarts, or evicts it."""
        self._drop("error", now)
        self._tower.room.left(self)
        self._end(outcome, now)

    def _drop(self, outcome: Outcome, now: float) -> None:
        legs = self._legs
        if legs is not None:
            if legs.has_begun:
                self.course.output_tokens = self._carried + legs.made
            self._close_legs(now)
            self._tower.router.end(legs.lease, now=now, outcome=outcome)

    def _close_legs(self, now: float) -> None:
        legs, self._legs = self._legs, None
        if legs is not None:
            self.course.preempted += legs.answer.preempted
            legs.drop(now)

    def _end(self, outcome: str, now: float) -> None:
        self.course.outcome = outcome
        self._ticket = self._last = None
        self._tower.router.queue.settle(self.request)
        self._tower.over(self, now)
