"""Whether a request may be sent at all, before and after an endpoint is priced.

404 the pool has no such model, 403 a policy forbids every endpoint or the tenant may not use any,
503 nothing can answer at present, 429 a limit of the tenant or key, or a saturated pool: capacity
exists and is taken. Every refusal names its rule.
"""

import math

import numpy as np

from routing.core.decision import Refusal
from routing.core.document import PoolDocument
from routing.core.price_terms import DECODE, WAIT
from routing.core.request import InferenceRequest
from routing.core.table import EndpointTable, Flags
from routing.pool.eligibility import Eligibility
from routing.pool.knowledge import Knowledge
from routing.pool.objective import Priced
from routing.producers.tenants import Exceeded

SHEDDABLE_SHARE = 0.25
"""Sheddable requests (priority below 0) are refused at this share of the wait for others."""
BREAKER_RETRY_SECONDS = 1.0
"""Retry-After when breakers hold every endpoint: their first pause."""
DEFAULT_SATURATION_SECONDS = 2.0
"""Wait over which requests queue in the router when neither admission nor SLO says: short enough
that priorities still decide who is next, long enough that engines never run dry between two looks
(an engine's queue of 2 s outlasts the readings, which come every 0.5 s)."""
SATURATED, TTL_EXPIRED = "rejected-saturated", "rejected-ttl-expired"
NO_ENDPOINTS, SHUTTING_DOWN = "rejected-no-endpoints", "rejected-shutting-down"
CANCELLED, EVICTED = "rejected-context-cancelled", "evicted-priority"

_LIMITS = {
    "concurrency": "{value:g} requests at once",
    "requests_per_second": "{value:g} requests per second",
    "tokens_per_minute": "{value:g} tokens per minute",
}


def refusal_of_request(
    known: Knowledge, request: InferenceRequest, *, is_retry: bool, now: float
) -> Refusal | None:
    """What the document forbids without looking at endpoints.

    A retry was admitted with its first attempt: the tenant's limits do not stop it half way.
    """
    if not known.rules.has_model(request.model):
        pool = known.document.pool
        return Refusal(
            status=404,
            code="model-not-found",
            message=f"The model '{request.model}' does not exist in pool {pool}.",
            rule="model",
        )
    if is_retry:
        return None
    tenant = known.tenants.spec(request.tenant)
    if tenant is not None and tenant.is_suspended:
        return Refusal(
            status=403,
            code="quota-exhausted",
            message=f"The tenant '{request.tenant}' is suspended or its budget is used up.",
            rule="tenant-suspended",
        )
    if not known.tenants.is_limiting:
        return None
    exceeded = known.tenants.exceeded(request, tokens=expected_tokens(known, request), now=now)
    return None if exceeded is None else _of_limit(exceeded, request)


def _of_limit(exceeded: Exceeded, request: InferenceRequest) -> Refusal:
    amount = _LIMITS[exceeded.name].format(value=exceeded.value)
    who = f"tenant '{request.tenant}'" if exceeded.level == "tenant" else f"key '{request.key_id}'"
    return Refusal(
        status=429,
        code="rate-limited",
        message=f"The {who} may use {amount}.",
        retry_after_seconds=exceeded.wait_seconds,
        rule=exceeded.rule,
    )


def expected_tokens(known: Knowledge, request: InferenceRequest) -> int:
    """Tokens of both phases that a request is expected to cost."""
    return request.parsed.prompt_tokens + known.expected_output(request)


def refusal_of_pool(eligible: Eligibility) -> Refusal | None:
    """What the hard filters left: nothing is 403 or 503."""
    if len(eligible.rows):
        return None
    rule = eligible.emptied_by
    if eligible.forbidden:
        return Refusal(
            status=403,
            code="policy-denied",
            message=f"The tenant's policy ({rule}) forbids every endpoint of this pool.",
            rule=rule,
        )
    return Refusal(
        status=503,
        code="no-capacity",
        message=f"No endpoint can take this request at present ({rule}).",
        retry_after_seconds=BREAKER_RETRY_SECONDS if rule == "breaker" else None,
        rule=rule,
        dropped_reason=NO_ENDPOINTS,
    )


def saturation_seconds(document: PoolDocument) -> float:
    """Expected wait at the best endpoint over which a pool counts as saturated.

    Without a queue in the router that is the wait which is refused; with one, the wait over which
    requests stay in the router.
    """
    admission = document.admission
    if not admission.queue_requests:
        return admission.maximum_wait_seconds
    stated = admission.saturation_seconds
    if stated is None:
        stated = document.slo.ttft_seconds
    if stated is None:
        stated = DEFAULT_SATURATION_SECONDS
    return min(stated, admission.maximum_wait_seconds)


def refusal_of_wait(
    document: PoolDocument, request: InferenceRequest, priced: Priced, *, is_retry: bool
) -> Refusal | None:
    """The saturation gate: shortest expected wait among the endpoints that may answer, in seconds.

    The wait holds both phases: the queue of prompts at whoever would compute this one, and the time
    until the destination has memory and a sequence free. A retry passed the gate with its first
    attempt; only the longest wait stops it.
    """
    most = document.admission.maximum_wait_seconds if is_retry else saturation_seconds(document)
    if request.priority < 0:
        most *= SHEDDABLE_SHARE
    terms, column = priced.terms.at(int(priced.rows[priced.cheapest]))
    if terms.at(WAIT, column) <= most:
        return None
    wait = priced.terms.cheapest_wait(priced.rows)
    if wait <= most:
        return None
    waits_here = document.admission.queue_requests > 0 and not is_retry
    bound = "are sent on, above it requests wait in the router" if waits_here else "are accepted"
    return Refusal(
        status=429,
        code="pool-saturated",
        message=f"The expected wait is {wait:.1f} s; at most {most:g} s {bound}.",
        retry_after_seconds=float(math.ceil(wait - most)),
        rule=f"saturation:{_phase(priced)}",
        dropped_reason=SATURATED,
    )


def refusal_of_crowd(known: Knowledge, priced: Priced, row: int) -> Refusal | None:
    """The gate of the decode phase: whether the chosen endpoint's batch has room for one more.

    Its step may not get longer than the pool's target. A request waits for the endpoint that its
    price chose: another one that is free would compute again what this one has, and take room from
    those whose prefixes it holds.
    """
    crowded, target = priced.crowded, known.document.slo.tpot_seconds
    if crowded is None or not crowded[row]:
        return None
    sequences = 1.0 if priced.sequences is None else max(1.0, float(priced.sequences[row]))
    terms, column = priced.terms.at(row)
    return Refusal(
        status=429,
        code="pool-saturated",
        message=f"With one request more, answers would take longer than {target:g} s per token.",
        retry_after_seconds=float(math.ceil(terms.at(DECODE, column) / sequences)),
        rule="saturation:decode",
        waits_for=known.table.ids[row],
        dropped_reason=SATURATED,
    )


def full_endpoints(known: Knowledge) -> frozenset[str]:
    """Endpoints that `refusal_of_crowd` would name for every request: a look without pricing.

    Those that nobody may be sent to are not among them: who waits for one has to choose again.
    """
    table, target = known.table, known.document.slo.tpot_seconds
    if target is None or not known.document.admission.queue_requests:
        return frozenset()
    step = table.step_seconds + (
        table.step_seconds_per_sequence * table.sequences
        + table.step_seconds_per_context_token * table.context_tokens
    )
    is_full = (step > target) & (table.step_seconds <= target)
    return frozenset([table.ids[row] for row in np.flatnonzero(_usable(table) & is_full)])


def idle_endpoints(known: Knowledge) -> frozenset[str]:
    """Endpoints that answer, may be sent to, and run nothing that a router of this pool sent."""
    table = known.table
    rows = np.flatnonzero(_usable(table) & table.answers & (table.sequences == 0))
    return frozenset([table.ids[row] for row in rows])


def _usable(table: EndpointTable) -> Flags:
    return table.is_ready & np.isneginf(table.open_until)


def _phase(priced: Priced) -> str:
    """The phase that is short at the endpoint with the shortest wait."""
    waits = priced.terms.waits()[priced.rows]
    best = int(waits.argmin())
    memory = float(priced.admission[priced.rows[best]])
    return "decode" if memory > 0.5 * float(waits[best]) else "prefill"
