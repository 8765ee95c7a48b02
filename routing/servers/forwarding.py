"""Attempts of one call, until one answered or none is left.

Before a byte went to the client, another endpoint is tried: a prefill endpoint that started nothing
is replaced by another one, any other prefill failure computes the prompt where it is decoded; a
decode endpoint that started nothing hands its ticket on. After the first byte a stream goes on
elsewhere where the pool lets it (`routing.servers.continuing`), else it ends with an error event.
"""

import asyncio
from asyncio import CancelledError
from collections.abc import Callable

import msgspec

from routing.core.decision import Decision
from routing.core.usage import Outcome
from routing.engines.base import TokenUsage
from routing.pool.retries import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    PATIENCE_SECONDS,
    PREFILL_FAILURES,
    RETRY_SHARE,
)
from routing.servers import attempt as attempts
from routing.servers import clock, deciding
from routing.servers.attempt import CLIENT_GONE, Attempt, Ending
from routing.servers.calls import Call
from routing.servers.continuing import Story
from routing.servers.delivery import Delivery, interrupted
from routing.servers.disaggregated import Ticket, both_legs, compute_prompt, meeting_body
from routing.servers.documents import Endpoint
from routing.servers.errors import ApiError
from routing.servers.failures import (
    BrokenStreamError,
    ClientAnswerError,
    EngineAnswerError,
    LegError,
)
from routing.servers.http import Connection
from routing.servers.legs import may_try_another, starts_nothing
from routing.servers.state import RouterState

COMPUTED_LOCALLY = "prefill-failed-computed-locally"
"""Word in the decision record for a prompt that was to be computed elsewhere."""


class Forwarding(msgspec.Struct, eq=False):
    """See the module."""

    state: RouterState
    call: Call
    client: Connection
    excluded: frozenset[str] = frozenset()
    prefill_failures: int = 0
    computes_locally: bool = False
    """Prefill endpoints failed this call; they are not asked again."""
    ticket: Ticket | None = None
    """Of a prompt that is computed and whose decode endpoint did not begin."""
    last_failure: LegError | None = None
    last_decision: Decision | None = None
    story: Story | None = None
    attempt: Attempt | None = None
    first: Decision | None = None
    """The choice that the call was let in with, for its first attempt."""

    async def run(self, when_cut: Callable[[], Ending] | None = None) -> None:
        """Answer the client. Raises ApiError when it must be told that nobody could.

        `when_cut` says how the attempt of a cancelled task ended; by default its client left.
        """
        if self.call.pool.document.limits.streams_continue:
            self.story = Story.of(self.call)
        try:
            await self._attempts()
        except CancelledError:
            if when_cut is None:
                self._settle("aborted", CLIENT_GONE)
            else:
                ending = when_cut()
                self._settle(ending.outcome, ending.status)
            raise
        except BaseException:
            self._settle("error", 500)
            raise
        finally:
            # Its traceback and its answer hold this object: a ring that only the collector ends.
            self.last_failure = None

    async def _attempts(self) -> None:
        limits = self.call.pool.document.limits
        number, left = 0, limits.attempts
        while left:
            number, left = number + 1, left - 1
            attempt = await self._begin(number, is_last=not left)
            if attempt is None:
                break
            try:
                await self._try(attempt)
            except BrokenStreamError as failure:
                # What came so far is progress, so the rest has as many attempts as a call.
                self._note_break(attempt, failure)
                left = max(left, limits.attempts - 1, 1)
            except LegError as failure:
                # Decided before the account is written: the last attempt is what the client got.
                left = 0 if self._is_overdue() else left
                self._note(attempt, failure, is_last=not left)
            else:
                return
        self._give_up()

    def _settle(self, outcome: Outcome, status: int) -> None:
        """Account for an attempt that was cut off; one that is accounted for already stays so."""
        if self.attempt is not None:
            self._finish(self.attempt, outcome, status)

    def _is_overdue(self) -> bool:
        """No retry begins later than this: one endpoint may use up the time for a first token."""
        if self.is_broken:
            return False
        waited = clock.monotonic() - self.call.request.arrived_at
        return waited > RETRY_SHARE * self.call.pool.document.limits.first_token_timeout_seconds

    @property
    def is_broken(self) -> bool:
        """The client has the begin of an answer, and nobody goes on with it yet."""
        return self.story is not None and self.story.pending is not None

    # The choice.

    async def _begin(self, number: int, *, is_last: bool) -> Attempt | None:
        """The next attempt; `None` when nobody is left. Raises ApiError for a refused call."""
        decision = await self._choose(number, is_last=is_last)
        self.last_decision = decision
        self.attempt = attempt = attempts.begin(self.state, self.call, decision, number=number)
        if decision.refusal is not None:
            if self.last_failure is not None:
                self._finish(attempt, "refused", self.last_failure.status)
                return None
            self._finish(attempt, "refused", decision.refusal.status)
            raise ApiError.of(decision.refusal)
        if self.story is not None and self.story.pending is not None:
            attempt.carried, attempt.answer_began_at = self.story.carried, self.story.began_at
        else:
            self._check_local(attempt)
        return attempt

    async def _choose(self, number: int, *, is_last: bool) -> Decision:
        """Decide; a broken stream waits a while for a place to go on."""
        if self.first is not None:
            first, self.first = self.first, None
            return first
        if self.ticket is not None:
            decision = self._hand_on(number)
            if decision is not None:
                return decision
            self.ticket = None
        self.computes_locally |= is_last and self.prefill_failures > 0
        until, pause = clock.monotonic() + PATIENCE_SECONDS, FIRST_PAUSE_SECONDS
        while True:
            decision = deciding.decide(
                self.state,
                self.call,
                excluded=self._out(),
                attempt=number,
                degraded=(COMPUTED_LOCALLY,) if self.computes_locally else (),
            )
            is_hopeless = decision.refusal is None or decision.refusal.status not in (429, 503)
            if is_hopeless or not self.is_broken or clock.monotonic() > until:
                return decision
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _out(self) -> frozenset[str]:
        """Endpoints that this call must not try (again)."""
        if not self.computes_locally:
            return self.excluded
        endpoints = self.call.pool.endpoints.items()
        return self.excluded | {
            name for name, endpoint in endpoints if endpoint.spec.role == "prefill"
        }

    def _hand_on(self, number: int) -> Decision | None:
        """Another decode endpoint for a prompt that is computed already."""
        before, now = self.last_decision, clock.monotonic()
        if self.ticket is None or before is None or now > self.ticket.valid_until:
            return None
        decision = self.call.pool.router.hand_on(before, exclude=self.excluded, now=now)
        if decision is not None:
            deciding.note(self.state, decision, attempt=number, began_at=now)
        return decision

    def _check_local(self, attempt: Attempt) -> None:
        """Never compute a prompt in the wrong place silently when it is long. Raises ApiError."""
        most = self.call.pool.document.disaggregation.local_prefill_tokens
        size = attempt.decision.predicted.uncached_tokens
        if not self.computes_locally or most is None or size <= most:
            return
        self._finish(attempt, "refused", 503)
        message = (
            f"Prefill endpoints failed, and about {size} tokens are more than the {most} that may"
            " be computed by a decode endpoint instead."
        )
        raise ApiError(503, message, code="prefill-unavailable", retry_after_seconds=1.0)

    # The legs.

    async def _try(self, attempt: Attempt) -> None:
        """Both legs of an attempt, or the only one. Raises LegError while a retry is possible."""
        endpoint = attempt.endpoint
        if endpoint is None:
            raise ValueError("A decision without refusal has a destination.")
        body = self._body(endpoint)
        delivery = Delivery(self.state, self.client, attempt, self.story, self._finish)
        try:
            if attempt.prefill is None:
                await delivery.run(endpoint, body)
            elif (at_once := endpoint.engine.at_once) is not None:
                body = meeting_body(attempt, at_once, body)
                decode = delivery.run(endpoint, body)
                await both_legs(self.state, attempt, decode, body, delivery.deadlines())
            else:
                body = await self._fetch(attempt, endpoint, delivery, body)
                await delivery.run(endpoint, body)
        except ClientAnswerError as refusal:
            delivery.pass_on(refusal.answer)

    def _body(self, endpoint: Endpoint) -> bytes:
        """The client's body with what an answer needs to be counted and to go on."""
        body, parsed = self.call.body, self.call.request.parsed
        if self.story is not None:
            body = self.story.asked(body)
        if parsed.stream and not parsed.include_usage:
            body = endpoint.engine.metered_body(body)
        return body

    async def _fetch(
        self, attempt: Attempt, endpoint: Endpoint, delivery: Delivery, body: bytes
    ) -> bytes:
        """Have the prompt computed, unless it is, and return the decode leg's body."""
        legs = endpoint.engine.in_turn
        if legs is None:
            raise ValueError("The engine has no legs in turn.")
        if self.ticket is None:
            deadlines = delivery.deadlines(is_whole=False)
            self.ticket = await compute_prompt(self.state, attempt, legs, deadlines)
        elif attempt.lease is not None:
            attempt.prefill_usage = self.ticket.usage
            self.call.pool.router.prompt_is_there(attempt.lease, now=clock.monotonic())
        return legs.decode_body(body, self.ticket.params)

    # Failures.

    def _note(self, attempt: Attempt, failure: LegError, *, is_last: bool) -> None:
        """Account for a failed attempt and keep its endpoint out of the next one."""
        attempts.blame(self.state, attempt, failure.kind, failure.endpoint_id)
        self.last_failure = failure
        self.excluded |= {failure.endpoint_id}
        at_prefill = attempt.prefill is not None and failure.endpoint_id == attempt.prefill.spec.id
        if at_prefill:
            self.prefill_failures += 1
            attempt.endpoint, self.ticket = attempt.prefill, None
            self.computes_locally |= not may_try_another(failure)
            self.computes_locally |= self.prefill_failures >= PREFILL_FAILURES
        elif self.ticket is not None:
            self._keep_ticket(attempt, failure)
        self._finish(attempt, "error", failure.status, delivered=is_last)

    def _keep_ticket(self, attempt: Attempt, failure: LegError) -> None:
        """The prompt's blocks are still there when the decode endpoint did not begin."""
        if starts_nothing(failure):
            # They are used again: no waste of this attempt.
            attempt.prefill_usage = None
        else:
            self.ticket = None

    def _note_break(self, attempt: Attempt, failure: BrokenStreamError) -> None:
        """Give back what a broken stream held and find the call for its rest."""
        attempts.blame(self.state, attempt, failure.kind, failure.endpoint_id)
        self.last_failure, self.ticket = failure, None
        self.excluded |= {failure.endpoint_id} | self._other_revisions(attempt)
        attempts.end_lease(attempt)
        pool = self.call.pool
        pool.router.queue.follow(failure.rest.request, of=self.call.request)
        self.call = failure.rest
        self.state.metrics.continued_streams.labels(self.call.pool.document.pool).inc()

    def _other_revisions(self, attempt: Attempt) -> set[str]:
        """Endpoints with other weights than those that wrote the begin."""
        if attempt.endpoint is None or attempt.endpoint.spec.kv_contract.model_revision is None:
            return set()
        ours = attempt.endpoint.spec.kv_contract.model_revision
        return {
            name
            for name, endpoint in self.call.pool.endpoints.items()
            if endpoint.spec.kv_contract.model_revision not in (None, ours)
        }

    def _finish(
        self,
        attempt: Attempt,
        outcome: Outcome,
        status: int,
        *,
        usage: TokenUsage | None = None,
        delivered: bool = True,
    ) -> None:
        """Write an attempt's account; one of a client's answer says that it was delivered."""
        story = self.story
        if story is not None and story.pending is not None and delivered:
            # Nobody went on: what the broken attempt wrote is all that the client got.
            pending, story.pending, delivered = story.pending, None, False
            ending = Ending(
                outcome="aborted" if outcome == "aborted" else "error",
                status=status if outcome == "aborted" else 200,
                delivered=True,
                usage=pending.broken_usage,
            )
            attempts.finish(self.state, pending, ending)
        ending = Ending(outcome=outcome, status=status, delivered=delivered, usage=usage)
        attempts.finish(self.state, attempt, ending)

    def _give_up(self) -> None:
        """Pass the engine's own last error on, or say that no endpoint could be reached."""
        failure = self.last_failure
        if failure is None:
            raise ValueError("Only a failed attempt ends without an answer.")
        if self.story is not None and self.story.is_begun:
            self.client.send(interrupted(failure.message, self.call.request.path))
            self.client.close_stream()
            return
        if failure.answer:
            raise EngineAnswerError(failure.answer)
        raise ApiError(
            503,
            f"No endpoint answered. The last one failed: {failure.message}",
            code="no-capacity",
            retry_after_seconds=1.0,
        )
