"""Limits per credential in the shared cache, as a sliding window over two fixed ones.

The window before counts with the share of it that still overlaps the last 60 seconds. If the cache
is away, the API goes on without limits: only logins close (`tenancy.throttle`).
"""

import logging
import math
from dataclasses import dataclass

from django.core.cache import cache
from django.utils import timezone
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

logger = logging.getLogger(__name__)

WINDOW_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Policy:
    """So many requests per window."""

    name: str
    quota: int


DEFAULT = Policy("default", 600)
WRITES = Policy("writes", 120)
HEAVY = Policy("heavy", 20)


@dataclass(frozen=True, slots=True)
class Standing:
    """How much of a policy is left."""

    policy: Policy
    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        """`RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers)."""
        policy = self.policy
        return {
            "RateLimit-Policy": f'"{policy.name}";q={policy.quota};w={WINDOW_SECONDS}',
            "RateLimit": f'"{policy.name}";r={max(0, self.remaining)};t={self.reset_seconds}',
        }


class CredentialThrottle(BaseThrottle):
    """600 requests a minute, of these 120 writes and 20 heavy ones (a view's `heavy_actions`)."""

    def allow_request(self, request: Request, view: object) -> bool:
        """False when a policy is used up; the tightest standing is kept for the headers."""
        who = _credential(request)
        standings = [_spend(policy, who) for policy in _policies(request, view)]
        known = [standing for standing in standings if standing is not None]
        if not known:
            return True
        tightest = min(known, key=lambda standing: standing.remaining)
        self.tightest = tightest
        request.rate_limit = tightest  # type: ignore[attr-defined]  # for the headers of the answer
        return tightest.remaining >= 0

    def wait(self) -> float | None:
        """Seconds until the window ends."""
        return float(self.tightest.reset_seconds)


def _policies(request: Request, view: object) -> list[Policy]:
    policies = [DEFAULT]
    if request.method not in {"GET", "HEAD", "OPTIONS"}:
        policies.append(WRITES)
    heavy: frozenset[str] = getattr(view, "heavy_actions", frozenset())
    if getattr(view, "action", None) in heavy or request.query_params.get("dry_run") == "true":
        policies.append(HEAVY)
    return policies


def _credential(request: Request) -> str:
    token = getattr(request.auth, "pk", None)
    return f"token:{token}" if token else f"user:{request.user.pk}"


def _spend(policy: Policy, who: str) -> Standing | None:
    """Count one request; None if the cache is away. `remaining` is -1 when it is one too many."""
    now = timezone.now().timestamp()
    number, into = divmod(now, WINDOW_SECONDS)
    here = f"rate:{policy.name}:{who}:{int(number)}"
    before = f"rate:{policy.name}:{who}:{int(number) - 1}"
    try:
        cache.add(here, 0, 2 * WINDOW_SECONDS)
        used = cache.incr(here)
        earlier = cache.get(before, 0)
    except (RedisError, OSError, ValueError) as error:
        logger.warning("Requests are not counted: %s", error)
        return None
    total = used + earlier * (1 - into / WINDOW_SECONDS)
    remaining = max(-1, math.floor(policy.quota - total))
    return Standing(policy, remaining, max(1, math.ceil(WINDOW_SECONDS - into)))
