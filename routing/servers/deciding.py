"""One choice for a call: timed, counted and, if it is due, recorded."""

import msgspec

from routing.core.decision import Decision, Refusal
from routing.servers import clock
from routing.servers.calls import Call
from routing.servers.decisions import is_offered
from routing.servers.state import RouterState


def decide(
    state: RouterState,
    call: Call,
    *,
    excluded: frozenset[str] = frozenset(),
    attempt: int = 1,
    degraded: tuple[str, ...] = (),
) -> Decision:
    """Choose for a call; `degraded` is what the caller knows to be less than wanted."""
    now = clock.monotonic()
    decision = choose(state, call, excluded=excluded, attempt=attempt, now=now)
    if degraded:
        decision = msgspec.structs.replace(decision, degraded=decision.degraded + degraded)
    note(state, decision, attempt=attempt, began_at=now)
    return decision


def choose(
    state: RouterState,
    call: Call,
    *,
    now: float,
    excluded: frozenset[str] = frozenset(),
    attempt: int = 1,
    is_waiting: bool = False,
) -> Decision:
    """Choose for a call; nothing is counted or recorded yet.

    Refusals of a call that `is_waiting` are not recorded: it waits on.
    """
    pool, request = call.pool, call.request
    keep = state.decisions.keep(
        pool.document.recording,
        tenant_rate=pool.router.sample_rate_of(request.tenant),
        is_special=attempt > 1 or bool(request.forced or request.avoided),
        now=now,
    )
    if is_waiting and keep == "refusals":
        keep = None
    return pool.router.decide(request, now=now, exclude=excluded, keep=keep)


def refused(call: Call, refusal: Refusal) -> Decision:
    """A decision that was made before endpoints were looked at."""
    document = call.pool.document
    return Decision(
        id=call.pool.router.ids.next(),
        request_id=call.request.id,
        request=call.request,
        policy=document.policy.name,
        pool=document.pool,
        document_version=document.version,
        decided_at=clock.monotonic(),
        refusal=refusal,
    )


def if_available(call: Call, decision: Decision) -> Decision:
    """The decision, or its refusal where the caller wants a cached prompt only and this is none.

    The end of a prompt that fills no whole block is in no index; engines compute the last block
    anew anyhow.
    """
    request, predicted = call.request, decision.predicted
    if not request.if_available or decision.refusal is not None:
        return decision
    is_pair = decision.prefill is not None
    cached = predicted.destination_hit_tokens if is_pair else predicted.indexed_tokens
    missing = request.parsed.prompt_tokens - cached
    if missing <= request.parsed.chunk_tokens:
        return decision
    refusal = Refusal(
        status=412,
        code="not-available",
        message=(
            f"About {missing} of {request.parsed.prompt_tokens} prompt tokens are not in the cache"
            " of the endpoint for this request. Send it without `Prefer: if-available` to have"
            " them computed."
        ),
        rule="prefer:if-available",
    )
    return msgspec.structs.replace(decision, refusal=refusal, destination=None, prefill=None)


def note(state: RouterState, decision: Decision, *, attempt: int, began_at: float) -> None:
    """Count a decision made since `began_at`, and offer it to the ring of records."""
    metrics, pool, now = state.metrics, decision.pool, clock.monotonic()
    metrics.decision_time(pool, decision.policy).observe(now - began_at)
    reason = decision.refusal.code if decision.refusal else "chosen"
    metrics.decision(pool, decision.policy, reason).inc()
    if not is_offered(decision, attempt=attempt):
        return
    loaded = state.directory.pools.get(pool)
    state.decisions.offer(
        decision,
        attempt=attempt,
        now=began_at,
        unix_now=clock.unix_now(),
        document_hash=loaded.sha256 if loaded else "",
    )
