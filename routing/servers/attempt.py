"""One attempt of a call at one destination: its lease, and its account when it ends."""

from dataclasses import dataclass

from routing.core.decision import Decision
from routing.core.lease import Lease
from routing.core.usage import Outcome, TokenSource, UsageEvent
from routing.engines.base import TokenUsage
from routing.servers import clock
from routing.servers.calls import Call
from routing.servers.documents import Endpoint
from routing.servers.state import RouterState

CLIENT_GONE = 499
"""Status in records of a request whose client left; nobody is sent it."""


@dataclass(slots=True, kw_only=True)
class Attempt:
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
    is_finished: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an attempt ended."""

    outcome: Outcome
    status: int
    delivered: bool
    usage: TokenUsage | None = None


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
    tokens, source = _tokens(attempt, ending)
    now = clock.monotonic()
    if attempt.lease:
        attempt.call.pool.router.end(
            attempt.lease,
            now=now,
            outcome="error" if ending.outcome == "refused" else ending.outcome,
            prompt_tokens=tokens.prompt_tokens if source == "engine" else None,
            cached_tokens=tokens.cached_tokens,
            completion_tokens=tokens.completion_tokens if source == "engine" else None,
        )
    event = _event(state, attempt, ending, tokens=tokens, source=source, now=now)
    state.spool.append(event)
    _count(state, event, now=now, arrived_at=attempt.call.request.arrived_at)


def _tokens(attempt: Attempt, ending: Ending) -> tuple[TokenUsage, TokenSource]:
    """Counts of the engine, else what the router saw; what nobody saw stays `None`."""
    prefill, usage = attempt.prefill_usage, ending.usage
    if usage is not None and usage.completion_tokens is not None:
        return _with_prefill_cache(usage, prefill), "engine"
    if attempt.events:
        parsed = attempt.call.request.parsed
        # The first event of a chat names the role; the others carry about a token each.
        spoken = attempt.events - (
            1 if attempt.call.request.path.endswith("/chat/completions") else 0
        )
        counted = TokenUsage(prompt_tokens=parsed.prompt_tokens, completion_tokens=max(1, spoken))
        return _with_prefill_cache(counted, prefill), "counted_by_router"
    return (prefill, "engine") if prefill else (TokenUsage(), "none")


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
        ttft_seconds=None if attempt.first_at is None else attempt.first_at - request.arrived_at,
        tpot_seconds=_tpot(attempt, tokens.completion_tokens, now=now),
    )


def _tpot(attempt: Attempt, completion_tokens: int | None, *, now: float) -> float | None:
    if attempt.first_at is None or completion_tokens is None or completion_tokens < 2:
        return None
    return (now - attempt.first_at) / (completion_tokens - 1)


def _count(state: RouterState, event: UsageEvent, *, now: float, arrived_at: float) -> None:
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
    if event.outcome != "ok":
        return
    metrics.e2e(event.pool, event.policy).observe(now - arrived_at)
    if event.ttft_seconds is not None:
        metrics.ttft(event.pool, event.policy).observe(event.ttft_seconds)
    if event.tpot_seconds is not None:
        metrics.tpot(event.pool, event.policy).observe(event.tpot_seconds)
