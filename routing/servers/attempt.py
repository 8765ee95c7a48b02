"""One attempt of a call at one destination: its lease, and its account when it ends."""

from typing import Any

import msgspec

from routing.core.decision import Decision
from routing.core.lease import Lease
from routing.core.usage import Outcome, TokenSource, UsageEvent
from routing.engines.base import TokenUsage
from routing.pool.router import Outcome as LeaseOutcome
from routing.servers import clock
from routing.servers.calls import Call
from routing.servers.documents import Endpoint
from routing.servers.state import RouterState
from routing.servers.upstream import FailureKind

CLIENT_GONE = 499
"""Status in records of a request whose client left; nobody is sent it."""

_EVENTS_BEFORE_TEXT = {"/v1/chat/completions": 1, "/v1/messages": 2, "/v1/responses": 4}
"""Events of a stream that tell its role, or that a message and a part of it begin."""


class Attempt(msgspec.Struct, kw_only=True, eq=False):
    """What is known while it runs. `lease` is `None` when nothing was chosen."""

    call: Call
    number: int
    decision: Decision
    lease: Lease | None = None
    endpoint: Endpoint | None = None
    prefill: Endpoint | None = None
    prefill_usage: TokenUsage | None = None
    """The prefill endpoint's own counts, once it answered."""
    first_at: float | None = None
    """Monotonic time of the first token of a stream."""
    events: int = 0
    """Streamed events, about one per token."""
    spoken: int | None = None
    """Tokens that this attempt wrote, where its text was read; else they follow from `events`."""
    carried: int = 0
    """Tokens of an earlier attempt that this one went on from; its engine counts them as prompt."""
    answer_began_at: float | None = None
    """Monotonic time of the first token of such an earlier attempt."""
    broken_usage: TokenUsage | None = None
    """The engine's own counts until its stream broke, if it told any."""
    is_finished: bool = False


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended."""

    outcome: Outcome
    status: int
    delivered: bool
    usage: TokenUsage | None = None
    is_seen: bool = True
    """False: somebody else carried the answer, and its end was concluded."""


def begin(state: RouterState, call: Call, decision: Decision, *, number: int) -> Attempt:
    """Open the lease of a decision that has a destination."""
    pool = call.pool
    attempt = Attempt(call=call, number=number, decision=decision)
    if decision.destination is None:
        return attempt
    attempt.endpoint = pool.endpoints[decision.destination]
    if decision.prefill is not None:
        attempt.prefill = pool.endpoints[decision.prefill]
    attempt.lease = pool.router.begin(call.request, decision, now=clock.monotonic())
    return attempt


def first_token(attempt: Attempt) -> None:
    """The first byte of a stream is here."""
    now = clock.monotonic()
    attempt.first_at = now
    if attempt.lease:
        attempt.call.pool.router.first_token(attempt.lease, now=now)


def prefill_done(attempt: Attempt, usage: TokenUsage) -> None:
    """The prompt was computed on the prefill endpoint."""
    attempt.prefill_usage = usage
    if attempt.lease:
        attempt.call.pool.router.prefill_done(
            attempt.lease,
            now=clock.monotonic(),
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
        )


def finish(state: RouterState, attempt: Attempt, ending: Ending) -> None:
    """End the lease, write the usage event and count; a second call does nothing."""
    if attempt.is_finished:
        return
    attempt.is_finished = True
    if _is_unfetched(attempt, ending):
        state.metrics.unfetched_prefills.labels(attempt.decision.pool).inc()
    tokens, source = _tokens(attempt, ending)
    now = clock.monotonic()
    _end_lease(attempt, ending, tokens, source, now=now)
    if attempt.carried:
        tokens = _whole_answer(tokens, attempt.carried)
    event = _event(state, attempt, ending, tokens=tokens, source=source, now=now)
    state.spool.append(event)
    _count(
        state, event, is_seen=ending.is_seen, now=now, arrived_at=attempt.call.request.arrived_at
    )
    if state.decisions.awaits(attempt.decision.id) or ending.outcome == "error":
        state.decisions.ended(attempt.decision, _outcome(event), now=now, unix_now=event.ended_at)


def _is_unfetched(attempt: Attempt, ending: Ending) -> bool:
    """The prompt was computed for a destination that, as far as is known, did not come for it."""
    if attempt.prefill is None or attempt.prefill_usage is None or ending.outcome == "ok":
        return False
    return attempt.first_at is None and attempt.prefill.engine.in_turn is not None


def _outcome(event: UsageEvent) -> dict[str, Any]:
    """What a decision's prediction is compared with."""
    return {
        "outcome": event.outcome,
        "status": event.status,
        "attempt": event.attempt,
        "ttft_seconds": event.ttft_seconds,
        "tpot_seconds": event.tpot_seconds,
        "seconds": event.ended_at - event.received_at,
        "prompt_tokens": event.prompt_tokens,
        "cached_tokens": event.cached_tokens,
        "completion_tokens": event.completion_tokens,
        "token_source": event.token_source,
        "endpoint": event.endpoint,
    }


def blame(state: RouterState, attempt: Attempt, kind: FailureKind, endpoint_id: str) -> None:
    """Tell breakers of a failure. The pair is blamed between a good prefill and the first token."""
    pool = attempt.call.pool
    endpoint = pool.endpoints.get(endpoint_id)
    if endpoint is not None and endpoint.spec.state == "draining":
        # It takes nothing more, and may have been asked to end what it runs.
        return
    is_moving = attempt.prefill_usage is not None and attempt.first_at is None
    is_pair = is_moving and kind != "connect"
    counted: FailureKind = "kv_transfer" if is_pair else kind
    pool.router.failed(
        endpoint_id,
        counted,
        now=clock.monotonic(),
        prefill_id=attempt.decision.prefill if is_pair else None,
    )
    state.metrics.attempt_failure(pool.document.pool, endpoint_id, counted).inc()


def end_lease(attempt: Attempt) -> None:
    """Give back what a broken attempt holds; its account is written by `finish`, later."""
    ending = Ending(outcome="error", status=200, delivered=False)
    _end_lease(attempt, ending, TokenUsage(), "none", now=clock.monotonic())


def _end_lease(
    attempt: Attempt, ending: Ending, tokens: TokenUsage, source: TokenSource, *, now: float
) -> None:
    if attempt.lease:
        attempt.call.pool.router.end(
            attempt.lease,
            now=now,
            outcome=_outcome_of_lease(ending),
            prompt_tokens=tokens.prompt_tokens if source == "engine" else None,
            cached_tokens=tokens.cached_tokens,
            completion_tokens=tokens.completion_tokens if source == "engine" else None,
        )


def _outcome_of_lease(ending: Ending) -> LeaseOutcome:
    if not ending.is_seen:
        return "unseen"
    return "error" if ending.outcome == "refused" else ending.outcome


def _whole_answer(tokens: TokenUsage, carried: int) -> TokenUsage:
    """Counts of the last part of an answer as those of the whole; the sum stays the engine's.

    The attempt before is waste, so that neither its prompt nor its output is billed twice.
    """
    prompt, completion, cached = (
        tokens.prompt_tokens,
        tokens.completion_tokens,
        tokens.cached_tokens,
    )
    prompt = None if prompt is None else max(0, prompt - carried)
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=None if completion is None else completion + carried,
        cached_tokens=cached if cached is None or prompt is None else min(cached, prompt),
    )


def _tokens(attempt: Attempt, ending: Ending) -> tuple[TokenUsage, TokenSource]:
    """Counts of the engine, else what the router saw; what nobody saw stays `None`."""
    prefill, usage = attempt.prefill_usage, ending.usage
    parsed = attempt.call.request.parsed
    if usage is not None and not parsed.has_output and usage.prompt_tokens is not None:
        usage = msgspec.structs.replace(usage, completion_tokens=0)
    if usage is not None and usage.completion_tokens is not None:
        return _with_prefill_cache(usage, prefill), "engine"
    if attempt.events:
        counted = TokenUsage(
            prompt_tokens=parsed.prompt_tokens, completion_tokens=max(1, _spoken(attempt))
        )
        return _with_prefill_cache(counted, prefill), "counted_by_router"
    return (prefill, "engine") if prefill else (TokenUsage(), "none")


def _spoken(attempt: Attempt) -> int:
    if attempt.spoken is not None:
        return attempt.spoken
    # Others than these carry about a token each.
    return attempt.events - _EVENTS_BEFORE_TEXT.get(attempt.call.request.path, 0)


def _with_prefill_cache(usage: TokenUsage, prefill: TokenUsage | None) -> TokenUsage:
    """A decode engine reports what it pulled as cached; the prefill engine knows the real hit."""
    if prefill is None:
        return usage
    return TokenUsage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_tokens=prefill.cached_tokens,
    )


def _event(
    state: RouterState,
    attempt: Attempt,
    ending: Ending,
    *,
    tokens: TokenUsage,
    source: TokenSource,
    now: float,
) -> UsageEvent:
    call, decision = attempt.call, attempt.decision
    request, spec = call.request, attempt.endpoint.spec if attempt.endpoint else None
    first_at = attempt.answer_began_at or attempt.first_at
    return UsageEvent(
        sequence=0,
        request_id=request.id,
        router=state.name,
        pool=decision.pool,
        document_version=decision.document_version,
        policy=decision.policy,
        tenant=request.tenant,
        project=request.project,
        key_id=request.key_id,
        model=request.model,
        endpoint=spec.id if spec else None,
        instance=spec.instance if spec else None,
        node=spec.node if spec else None,
        role=spec.role if spec else None,
        prefill_endpoint=attempt.prefill.spec.id if attempt.prefill else None,
        received_at=call.received_at,
        ended_at=clock.unix_now(),
        outcome=ending.outcome,
        status=ending.status,
        attempt=attempt.number,
        delivered=ending.delivered,
        stream=request.parsed.stream,
        prompt_tokens=tokens.prompt_tokens,
        cached_tokens=tokens.cached_tokens,
        completion_tokens=tokens.completion_tokens,
        token_source=source,
        ttft_seconds=None if first_at is None else first_at - request.arrived_at,
        tpot_seconds=_tpot(first_at, tokens.completion_tokens, now=now),
        asked_model=request.asked_model,
    )


def _tpot(first_at: float | None, completion_tokens: int | None, *, now: float) -> float | None:
    if first_at is None or completion_tokens is None or completion_tokens < 2:
        return None
    return (now - first_at) / (completion_tokens - 1)


def _count(
    state: RouterState, event: UsageEvent, *, is_seen: bool, now: float, arrived_at: float
) -> None:
    """Metrics of an attempt; the answer counts once, with the attempt that reached the client."""
    metrics = state.metrics
    for kind, count in (
        ("prompt", event.prompt_tokens),
        ("cached", event.cached_tokens),
        ("completion", event.completion_tokens),
    ):
        if count:
            metrics.token(event.pool, kind).inc(count)
    if not event.delivered:
        return
    is_failure = event.status >= 500 or (event.outcome == "error" and event.status < 400)
    state.requests.total += 1
    state.requests.failed += is_failure
    state.requests.by_status[event.status] += 1
    metrics.request(event.pool, event.outcome, str(event.status)).inc()
    if event.outcome != "ok" or not is_seen:
        return
    metrics.e2e(event.pool, event.policy).observe(now - arrived_at)
    if event.ttft_seconds is not None:
        metrics.ttft(event.pool, event.policy).observe(event.ttft_seconds)
    if event.tpot_seconds is not None:
        metrics.tpot(event.pool, event.policy).observe(event.tpot_seconds)
