"""Whether a request may be sent at all, before and after an endpoint is priced.

404 the pool has no such model, 403 the tenant's jurisdictions remove every endpoint, 503 nothing
can answer at present, 429 the tenant's own limit or a saturated pool: capacity exists and is taken.
"""

import math

from routing.core.decision import Refusal
from routing.core.document import PoolDocument
from routing.core.request import InferenceRequest
from routing.pool.eligibility import Eligibility
from routing.pool.knowledge import Knowledge

SHEDDABLE_SHARE = 0.25
"""Sheddable requests (priority below 0) are refused at this share of the maximum wait."""
BREAKER_RETRY_SECONDS = 1.0
"""Retry-After when breakers hold every endpoint: their first pause."""


def refusal_of_request(
    known: Knowledge, request: InferenceRequest, *, is_retry: bool, now: float
) -> Refusal | None:
    """What the document forbids without looking at endpoints.

    A retry was admitted with its first attempt: the tenant's limits do not stop it half way.
    """
    document = known.document
    if all(model.name != request.model for model in document.models):
        return Refusal(
            status=404,
            code="model-not-found",
            message=f"The model '{request.model}' does not exist in pool {document.pool}.",
        )
    limits = known.tenants.spec(request.tenant)
    if limits is None or is_retry:
        return None
    if (
        limits.concurrency is not None
        and known.leases.open_of(request.tenant) >= limits.concurrency
    ):
        return Refusal(
            status=429,
            code="tenant-concurrency",
            message=f"{limits.concurrency} requests of this tenant are running, its limit.",
            retry_after_seconds=1.0,
        )
    wait = known.tenants.seconds_until_allowed(request.tenant, now=now)
    if wait > 0:
        return Refusal(
            status=429,
            code="tenant-rate",
            message=f"This tenant may send {limits.requests_per_second:g} requests per second.",
            retry_after_seconds=wait,
        )
    return None


def refusal_of_pool(eligible: Eligibility) -> Refusal | None:
    """What the hard filters left: nothing is 403 or 503."""
    if len(eligible.rows):
        return None
    if eligible.forbidden:
        return Refusal(
            status=403,
            code="policy-denied",
            message="No endpoint of this pool is in a jurisdiction that the tenant may use.",
        )
    is_broken = any(rule == "breaker" for rule, _ in eligible.removed)
    return Refusal(
        status=503,
        code="no-capacity",
        message="No endpoint can take this request at present.",
        retry_after_seconds=BREAKER_RETRY_SECONDS if is_broken else None,
    )


def refusal_of_wait(
    document: PoolDocument, request: InferenceRequest, *, wait: float
) -> Refusal | None:
    """The saturation gate: cheapest expected wait against the document's maximum, in seconds."""
    maximum = document.admission.maximum_wait_seconds
    if request.priority < 0:
        maximum *= SHEDDABLE_SHARE
    if wait <= maximum:
        return None
    return Refusal(
        status=429,
        code="pool-saturated",
        message=f"The expected wait is {wait:.1f} s; at most {maximum:g} s are accepted.",
        retry_after_seconds=float(math.ceil(wait - maximum)),
    )
