"""Serve one completion: decide, forward, relay; retry elsewhere until a byte reached the client."""

from asyncio import CancelledError
from dataclasses import dataclass
from typing import NoReturn

from routing.core.decision import Decision, Refusal
from routing.core.usage import Outcome
from routing.engines.base import TokenUsage
from routing.servers import attempt as attempts
from routing.servers import clock
from routing.servers.attempt import CLIENT_GONE, Attempt, Ending
from routing.servers.calls import Call
from routing.servers.disaggregated import ClientAnswerError, LegError, compute_prompt
from routing.servers.documents import Endpoint
from routing.servers.errors import ApiError
from routing.servers.http import Connection
from routing.servers.messages import request_message
from routing.servers.relay import Relay, RelayTerms, with_cached_tokens
from routing.servers.state import RouterState
from routing.servers.upstream import (
    ClientBlockedError,
    Collected,
    Deadlines,
    FailureKind,
    UpstreamError,
)

PREFILL_FAILURES = 2
"""After so many failed prefill endpoints the prompt is computed where it is decoded."""
UNSTREAMED_TOKENS = 8192
UNSTREAMED_SECONDS_PER_TOKEN = 0.25
"""A whole answer may take as long as its first token plus so much for each token of it."""


async def serve(state: RouterState, call: Call, client: Connection) -> None:
    """Answer a call. Raises ApiError when nobody could, before a byte was written."""
    pool = call.pool
    most = pool.document.limits.concurrent_requests
    if pool.running >= most:
        _refuse(state, call, _busy(most))
    pool.running += 1
    try:
        await Forwarding(state, call, client).run()
    finally:
        pool.running -= 1


def _busy(most: int) -> Refusal:
    return Refusal(
        status=429,
        code="router-busy",
        message=f"This router serves {most} requests of the pool at once.",
        retry_after_seconds=1.0,
    )


def _refuse(state: RouterState, call: Call, refusal: Refusal) -> NoReturn:
    """Refuse before any choice; it is accounted like a refused choice."""
    document = call.pool.document
    decision = Decision(
        id=f"refused-{call.request.id}",
        request_id=call.request.id,
        policy=document.policy.name,
        pool=document.pool,
        document_version=document.version,
        decided_at=clock.monotonic(),
        refusal=refusal,
    )
    state.metrics.decision(document.pool, decision.policy, refusal.code).inc()
    attempt = attempts.begin(state, call, decision, number=1)
    ending = Ending(outcome="refused", status=refusal.status, delivered=True)
    attempts.finish(state, attempt, ending)
    raise ApiError.of(refusal)


def decide(
    state: RouterState, call: Call, *, excluded: frozenset[str] = frozenset(), attempt: int = 1
) -> Decision:
    """Choose for a call, timed and, if it is due, recorded."""
    now = clock.monotonic()
    decision = call.pool.router.decide(call.request, now=now, exclude=excluded)
    metrics, pool = state.metrics, decision.pool
    metrics.decision_time(pool, decision.policy).observe(clock.monotonic() - now)
    reason = decision.refusal.code if decision.refusal else "chosen"
    metrics.decision(pool, decision.policy, reason).inc()
    state.decisions.offer(decision, attempt=attempt, now=now, unix_now=clock.unix_now())
    return decision


@dataclass(slots=True)
class Forwarding:
    """Attempts of one call, until one answered or none is left."""

    state: RouterState
    call: Call
    client: Connection
    excluded: frozenset[str] = frozenset()
    prefill_failures: int = 0
    last_failure: LegError | None = None

    async def run(self) -> None:
        """Answer the client. Raises ApiError when it must be told that nobody could."""
        limits = self.call.pool.document.limits
        for number in range(1, limits.attempts + 1):
            attempt = self._begin(number, is_last=number == limits.attempts)
            try:
                await self._try(attempt)
            except LegError as failure:
                self._note(attempt, failure, is_last=number == limits.attempts)
            except CancelledError:
                self._finish(attempt, "aborted", CLIENT_GONE)
                raise
            except BaseException:
                self._finish(attempt, "error", 500)
                raise
            else:
                return
        self._give_up()

    def _begin(self, number: int, *, is_last: bool) -> Attempt:
        excluded = self.excluded
        if self.prefill_failures >= PREFILL_FAILURES or (is_last and self.prefill_failures):
            excluded |= {
                name
                for name, endpoint in self.call.pool.endpoints.items()
                if endpoint.spec.role == "prefill"
            }
        decision = decide(self.state, self.call, excluded=excluded, attempt=number)
        attempt = attempts.begin(self.state, self.call, decision, number=number)
        if decision.refusal:
            if self.last_failure:
                self._finish(attempt, "refused", self._status_of(self.last_failure))
                self._give_up()
            self._finish(attempt, "refused", decision.refusal.status)
            raise ApiError.of(decision.refusal)
        return attempt

    async def _try(self, attempt: Attempt) -> None:
        """Both legs of an attempt, or the only one. Raises LegError while a retry is possible."""
        endpoint = attempt.endpoint
        if endpoint is None:
            raise ValueError("A decision without refusal has a destination.")
        body = self.call.body
        try:
            if attempt.prefill:
                ticket = await compute_prompt(
                    self.state, attempt, self._deadlines(is_whole_answer=False)
                )
                body = endpoint.engine.decode_body(body, ticket)
        except ClientAnswerError as refusal:
            self._answer(attempt, refusal.answer)
            return
        if self.call.request.parsed.stream:
            await self._stream(attempt, endpoint, body)
        else:
            await self._collect(attempt, endpoint, body)

    async def _collect(self, attempt: Attempt, endpoint: Endpoint, body: bytes) -> None:
        answer = Collected()
        message = request_message(self.call, endpoint.origin, body)
        deadlines = self._deadlines(is_whole_answer=True)
        try:
            await self.state.upstreams.run(endpoint.origin, message, answer, deadlines)
        except UpstreamError as error:
            raise LegError(endpoint.spec.id, error.kind, error.message) from error
        self._answer(attempt, answer)

    async def _stream(self, attempt: Attempt, endpoint: Endpoint, body: bytes) -> None:
        parsed = self.call.request.parsed
        relay = self._relay(attempt, endpoint)
        if not parsed.include_usage:
            body = endpoint.engine.metered_body(body)
        message = request_message(self.call, endpoint.origin, body)
        deadlines = self._deadlines(is_whole_answer=False)
        try:
            await self.state.upstreams.run(endpoint.origin, message, relay, deadlines)
        except UpstreamError as error:
            attempt.events = relay.events
            if not relay.streamed:
                raise LegError(endpoint.spec.id, error.kind, error.message) from error
            self._break_stream(attempt, relay, error)
            return
        finally:
            attempt.events = relay.events
        if relay.streamed:
            relay.finish()
            self._finish(attempt, "ok", 200, usage=relay.usage())
        else:
            self._answer(attempt, relay)

    def _relay(self, attempt: Attempt, endpoint: Endpoint) -> Relay:
        router, lease = self.call.pool.router, attempt.lease
        prefill = attempt.prefill_usage

        def on_tokens(count: int) -> None:
            if lease:
                router.tokens(lease, count, now=clock.monotonic())

        terms = RelayTerms(
            answer_headers=answer_headers(attempt.decision),
            hide_usage=not self.call.request.parsed.include_usage,
            cached_tokens=prefill.cached_tokens if prefill else None,
            on_first=lambda: attempts.first_token(attempt),
            on_tokens=on_tokens,
        )
        return Relay(self.client, endpoint.engine, terms)

    def _answer(self, attempt: Attempt, answer: Collected) -> None:
        """Hand a whole answer to the client. Raises LegError for 5xx: another may do better."""
        if answer.status >= 500 and attempt.endpoint:
            name = attempt.endpoint.spec.id
            raise LegError(name, "status", f"{name} answered {answer.status}.", answer)
        body, usage = answer.body, None
        if answer.status == 200 and attempt.endpoint:
            usage = attempt.endpoint.engine.usage(body)
            body = self._corrected(attempt, body, usage)
        self._respond(attempt.decision, answer, body)
        self._finish(attempt, "ok" if answer.status < 400 else "error", answer.status, usage=usage)

    def _corrected(self, attempt: Attempt, body: bytes, usage: TokenUsage | None) -> bytes:
        prefill = attempt.prefill_usage
        if not prefill or prefill.cached_tokens is None or not usage or usage.cached_tokens is None:
            return body
        return with_cached_tokens(body, prefill.cached_tokens)

    def _respond(self, decision: Decision, answer: Collected, body: bytes) -> None:
        self.client.respond(
            answer.status,
            body,
            content_type=answer.headers.get(b"content-type", b"application/json"),
            headers=answer_headers(decision),
        )

    def _break_stream(self, attempt: Attempt, relay: Relay, error: UpstreamError) -> None:
        """After the first byte nothing can be tried again: end with an error event."""
        if isinstance(error, ClientBlockedError):
            self.client.abort()
            self._finish(attempt, "aborted", CLIENT_GONE, usage=relay.usage())
            return
        self._blame(attempt, error.kind, attempt.decision.destination or "")
        relay.fail(
            ApiError(
                502, f"The stream was interrupted: {error.message}", code="stream-interrupted"
            ).event()
        )
        self._finish(attempt, "error", 200, usage=relay.usage())

    def _note(self, attempt: Attempt, failure: LegError, *, is_last: bool) -> None:
        """Account for a failed attempt and keep its endpoint out of the next one."""
        self._blame(attempt, failure.kind, failure.endpoint_id)
        self.last_failure = failure
        self.excluded |= {failure.endpoint_id}
        at_prefill = attempt.prefill is not None and failure.endpoint_id == attempt.prefill.spec.id
        if at_prefill:
            self.prefill_failures += 1
            attempt.endpoint = attempt.prefill
        self._finish(attempt, "error", self._status_of(failure), delivered=is_last)

    def _blame(self, attempt: Attempt, kind: FailureKind, endpoint_id: str) -> None:
        """Tell breakers. The pair is blamed between a good prefill and the first token."""
        pool = attempt.call.pool
        prefill_id = attempt.decision.prefill
        is_moving = attempt.prefill_usage is not None and attempt.first_at is None
        is_pair = is_moving and kind != "connect"
        counted: FailureKind = "kv_transfer" if is_pair else kind
        pool.router.failed(
            endpoint_id,
            counted,
            now=clock.monotonic(),
            prefill_id=prefill_id if is_pair else None,
        )
        failures = self.state.metrics.attempt_failures
        failures.labels(pool.document.pool, endpoint_id, counted).inc()

    def _finish(
        self,
        attempt: Attempt,
        outcome: Outcome,
        status: int,
        *,
        usage: TokenUsage | None = None,
        delivered: bool = True,
    ) -> None:
        ending = Ending(outcome=outcome, status=status, delivered=delivered, usage=usage)
        attempts.finish(self.state, attempt, ending)

    def _status_of(self, failure: LegError) -> int:
        return failure.answer.status if failure.answer else 503

    def _give_up(self) -> None:
        """Pass the engine's own last error on, or say that no endpoint could be reached."""
        failure = self.last_failure
        if failure is None:
            raise ValueError("Only a failed attempt ends without an answer.")
        if failure.answer:
            raise EngineAnswerError(failure.answer)
        raise ApiError(
            503,
            f"No endpoint answered. The last one failed: {failure.message}",
            code="no-capacity",
            retry_after_seconds=1.0,
        )

    def _deadlines(self, *, is_whole_answer: bool) -> Deadlines:
        limits = self.call.pool.document.limits
        first = limits.first_token_timeout_seconds
        if is_whole_answer:
            tokens = self.call.request.parsed.max_tokens or UNSTREAMED_TOKENS
            first += tokens * UNSTREAMED_SECONDS_PER_TOKEN
        return Deadlines(
            connect=limits.connect_timeout_seconds,
            first_byte=first,
            stall=limits.stall_timeout_seconds,
        )


class EngineAnswerError(Exception):
    """Every attempt failed and the last engine said why; its answer is passed on unchanged."""

    def __init__(self, answer: Collected) -> None:
        super().__init__()
        self.answer = answer


def answer_headers(decision: Decision) -> bytes:
    """Header lines that let a client name its request and its decision."""
    return b"x-request-id: %b\r\nx-consort-decision-id: %b\r\n" % (
        decision.request_id.encode(),
        decision.id.encode(),
    )
