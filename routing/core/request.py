"""A request as the decision sees it: identity, sizes and what its sender asks for; no text."""

import msgspec

from routing.core.openai import ParsedBody


class RequestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a record of a decision may tell of a request: names and wishes, no text.

    Tenant, project and jurisdictions come from the key, never from a header of the caller.
    """

    path: str
    model: str
    tenant: str
    project: str
    key_id: str
    priority: int = 0
    """Below 0 is sheddable."""
    jurisdictions: tuple[str, ...] | None = None
    """Where the request and its KV may be; `None` is anywhere."""
    slo_ttft_seconds: float | None = None
    slo_tpot_seconds: float | None = None
    """Targets that the caller asks for; `None` leaves the pool's."""
    queue_seconds: float | None = None
    """Longest wait in the router that the caller accepts; it may only shorten the pool's."""
    session: str | None = None
    """Hash of the caller's session, its tenant and the pool: two tenants' values never meet."""
    fairness: str | None = None
    """Flow inside a tenant that takes turns with its other flows."""
    forced: tuple[str, ...] = ()
    """Endpoint ids to choose among, for keys that may test; () is every endpoint."""
    avoided: tuple[str, ...] = ()
    """Endpoint ids to leave out, for keys that may test."""
    adapter: str | None = None
    """Name of the adapter, when the model is one."""
    asked_model: str | None = None
    """Name that the caller used, when a rule rewrote it into `model`."""
    objective: str | None = None
    """Objective that the priority is from."""


class InferenceRequest(RequestFacts, frozen=True, kw_only=True):
    """A request that is to be decided."""

    id: str
    parsed: ParsedBody
    arrived_at: float
    """Seconds on the router's monotonic clock."""
    if_available: bool = False
    """Serve it only where the destination's cache covers the prompt (`Prefer: if-available`)."""
    subset: frozenset[str] | None = None
    """Endpoint ids that the gateway lets this request go to; `None` is every endpoint."""
