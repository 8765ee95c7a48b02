"""What the caller of a decision is told of it: its own answer, and nothing of other endpoints.

Prices, fallbacks and filtered endpoints tell of the fleet, of its load and of what others sent:
they are in the record, which is the operator's.
"""

from types import ModuleType
from typing import Any

import msgspec

from routing.core.decision import Decision, Refusal
from routing.core.record import decided_by, number
from routing.explain import english, korean
from routing.explain.explanation import Language, explain

_WORDS: dict[str, ModuleType] = {"en": english, "ko": korean}


class OwnAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as its caller may see it. `destination` is `None` exactly for a refusal."""

    id: str
    request_id: str
    pool: str
    policy: str
    model: str | None
    """Name that the destination is to be asked for, where a rule rewrote the caller's."""
    destination: str | None
    prefill: str | None
    """Endpoint that computes the prompt; `None` when the destination does."""
    refusal: dict[str, Any] | None
    """Status, code, message and `retry_after_seconds`."""
    reason: str


def own_answer(decision: Decision, *, language: Language = "en") -> OwnAnswer:
    """The answer of a decision, with its reason in words."""
    return OwnAnswer(
        id=decision.id,
        request_id=decision.request_id,
        pool=decision.pool,
        policy=decision.policy,
        model=_model(decision),
        destination=decision.destination,
        prefill=decision.prefill,
        refusal=_refusal(decision.refusal),
        reason=_reason(decision, language),
    )


def _model(decision: Decision) -> str | None:
    request = decision.request
    return request.model if request is not None and request.asked_model else None


def _refusal(refusal: Refusal | None) -> dict[str, Any] | None:
    if refusal is None:
        return None
    return {
        "status": refusal.status,
        "code": refusal.code,
        "message": refusal.message,
        "retry_after_seconds": number(refusal.retry_after_seconds),
    }


def _reason(decision: Decision, language: Language) -> str:
    if decision.refusal is not None:
        model = decision.request.model if decision.request else ""
        told = {
            "refusal": _refusal(decision.refusal),
            "pool": decision.pool,
            "request": {"model": model},
        }
        return explain(told, language=language).sentence
    own: dict[str, str] = _WORDS[language].OWN
    template = own.get(decided_by(decision), own["policy"])
    return template.format(
        destination=decision.destination,
        policy=decision.policy,
        hit_tokens=f"{decision.predicted.hit_tokens:,}",
    )
