"""Who may ask a pool, and how much."""

from typing import Annotated

import msgspec

from routing.core.specs.base import Positive, Rate, Seconds, Sha256, Share, Slug, Strict


class TenantSpec(Strict, frozen=True, kw_only=True):
    """Limits of a tenant; `None` is no limit at this level."""

    tenant: Slug
    concurrency: Positive | None = None
    requests_per_second: Rate | None = None
    jurisdictions: tuple[Slug, ...] | None = None
    """Where this tenant's requests and KV may be; an endpoint without one is out."""
    operators: tuple[Slug, ...] | None = None
    """Who may run the nodes of this tenant's requests; an endpoint without one is out."""
    tokens_per_minute: Rate | None = None
    """Prompt and output tokens; settled when a response ends."""
    share: Rate = 1.0
    """Weight among tenants that wait in one band."""
    is_suspended: bool = False
    """Budget used up or tenant suspended: every request is refused."""
    cache_salt: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    """Separates this tenant's cached prefixes, in the index and in the engines."""
    sample_rate: Share | None = None
    """Share of its ordinary decisions that are recorded; `None` is the pool's."""


class KeySpec(Strict, frozen=True, kw_only=True):
    """An inference key: who may ask, never the secret itself."""

    id: Slug
    sha256: Sha256
    tenant: Slug
    project: Slug
    models: tuple[Slug, ...] | None = None
    expires_at: Seconds | None = None
    """Unix time; `None` never expires."""
    concurrency: Positive | None = None
    requests_per_second: Rate | None = None
    tokens_per_minute: Rate | None = None
    may_test: bool = False
    """May force or exclude endpoints by header, and have decisions explained, for tests."""
    may_reserve: bool = False
    """May take reservations for a proxy of its own, whose reports of usage are believed."""
    highest_priority: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 0
    """A caller may ask by header for priorities up to this one: bands are strict, so whoever may
    choose a higher one is served before everybody else."""
