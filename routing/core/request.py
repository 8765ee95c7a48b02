"""A request as the decision sees it: identity and sizes, no prompt text."""

import msgspec

from routing.core.openai import ParsedBody


class InferenceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Tenant, project and jurisdictions come from the key, never from a header of the caller."""

    id: str
    path: str
    model: str
    tenant: str
    project: str
    key_id: str
    parsed: ParsedBody
    arrived_at: float
    """Seconds on the router's monotonic clock."""
    priority: int = 0
    """Below 0 is sheddable."""
    session: str | None = None
    jurisdictions: tuple[str, ...] | None = None
    """Where the request and its KV may be; `None` is anywhere."""
