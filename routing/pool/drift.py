"""Sentences about caches that are not as the router believes, with the likely cause."""

from dataclasses import dataclass

from routing.core.publishers import Publisher
from routing.producers.event_health import EventHealth
from routing.producers.hit_audit import HitAudit

CODE = "cache-predictions-wrong"
EVENTS_CODE = "cache-events-lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of one endpoint."""

    audit: HitAudit
    health: EventHealth | None
    publisher: Publisher | None
    router_block_tokens: int
    stated_block_tokens: int


def message(endpoint: str, seen: Seen) -> str | None:
    """What differs and why; `None` when predictions hold, or too little was seen."""
    predicted, real = seen.audit.predicted_rate, seen.audit.real_rate
    if predicted is None or real is None:
        return None
    rates = f"{predicted:.0%} of prompt tokens were predicted to be cached, {real:.0%} were"
    if seen.audit.is_unconfirmed:
        return f"{endpoint}: {rates}. {_why_unconfirmed(seen)}"
    if seen.audit.is_unpredicted and seen.publisher is not None:
        return (
            f"{endpoint}: {rates}, although its events are followed. The engine probably hashes"
            " other tokens than this router: another chat template, tokenizer, adapter or salt."
        )
    return None


def _why_unconfirmed(seen: Seen) -> str:
    size = None if seen.publisher is None else seen.publisher.engine_block_tokens
    if size is not None and size != seen.stated_block_tokens:
        return (
            f"Its blocks have {size} tokens and not {seen.stated_block_tokens} as the document"
            " says, so that short hits do not count."
        )
    if seen.health is None:
        return (
            "It publishes no events, so hits are guessed: prefix caching may be off there, its"
            " cache smaller than it says, or others push this router's prompts out."
        )
    if seen.health.state == "doubtful":
        return "Events of it were lost, so blocks may have left unseen."
    if seen.health.counts["rollback"]:
        return "It was started anew; a restart may have been missed."
    return "It may not use its prefix cache for these requests, or it was started anew unseen."


def doubt(endpoint: str, health: EventHealth, *, now: float) -> str:
    """Why a stream of events is not believed."""
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(health.counts.items()))
    return (
        f"{endpoint}: cache events were lost or could not be read {now - health.doubtful_since:.0f}"
        f" s ago ({reasons}), so its cache counts for {health.trust(now=now):.0%}."
    )
