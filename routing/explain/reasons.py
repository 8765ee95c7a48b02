"""What decided a record: the kind of reason and the numbers that show it, without words."""

from collections.abc import Mapping
from typing import Any

import msgspec

Json = Mapping[str, Any]

EQUAL_SECONDS = 5e-4
"""Prices nearer than this are equal to a reader."""
FACTORS: Mapping[str, tuple[str, ...]] = {
    "wait": ("wait",),
    "prompt": ("prefill", "load", "first_step", "capacity"),
    "transfer": ("transfer",),
    "cold": ("warm_up",),
    "decode": ("decode",),
    "harm": ("harm",),
    "slo": ("slo",),
    "money": ("money",),
}
"""Terms that one cause moves together; the factor with the largest advantage is the reason."""


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Kind of the sentence, and its numbers."""

    kind: str
    facts: dict[str, Any]


def reason_of(record: Json) -> Reason:
    """The reason of a decision; `unexplained` when the record holds too little for one."""
    if record.get("refusal"):
        return _refused(record)
    winner = candidate(record, record.get("destination"))
    if winner is None:
        return Reason(kind="unexplained", facts=_base(record))
    return _forced(record) or _only(record) or _chosen(record, winner)


def _chosen(record: Json, winner: Json) -> Reason:
    rival = _rival(record)
    if rival is None or not winner.get("terms") or not rival.get("terms"):
        return Reason(kind="by-policy", facts=_base(record))
    facts = _compared(record, winner, rival)
    if record.get("policy") != "consort":
        return _by_policy(facts)
    return _by_price(facts, winner, rival)


def candidate(record: Json, name: str | None) -> Json | None:
    """The candidate of a name."""
    rows = record.get("candidates") or ()
    return next((row for row in rows if row.get("endpoint") == name), None)


def _base(record: Json) -> dict[str, Any]:
    return {
        "destination": record.get("destination") or "",
        "policy": record.get("policy", ""),
        "pool": record.get("pool", ""),
    }


def _refused(record: Json) -> Reason:
    refusal = record["refusal"]
    facts = _base(record) | {
        "status": refusal.get("status"),
        "code": refusal.get("code", ""),
        "message": refusal.get("message", ""),
        "retry_after": refusal.get("retry_after_seconds"),
        "model": (record.get("request") or {}).get("model", ""),
    }
    return Reason(kind=f"refused-{facts['code']}", facts=facts)


def _forced(record: Json) -> Reason | None:
    request = record.get("request") or {}
    rules = {row.get("rule") for row in record.get("rejected") or ()}
    if request.get("forced") or rules & {"forced", "not-forced"}:
        return Reason(kind="forced", facts=_base(record))
    return None


def _only(record: Json) -> Reason | None:
    if record.get("candidate_count", 0) != 1:
        return None
    removed = sum((record.get("removed") or {}).values())
    kind = "only-left" if removed else "only-one"
    return Reason(kind=kind, facts=_base(record) | {"removed": removed})


def _rival(record: Json) -> Json | None:
    """The runner-up, else the cheapest of the others."""
    named = candidate(record, record.get("runner_up"))
    if named is not None and record.get("policy") == "consort":
        return named
    others = [
        row
        for row in record.get("candidates") or ()
        if row.get("endpoint") != record.get("destination") and _total(row) is not None
    ]
    return min(others, key=lambda row: _total(row) or 0.0, default=None)


def _total(row: Json) -> float | None:
    total = (row.get("terms") or {}).get("total")
    return total if isinstance(total, int | float) else None


def _compared(record: Json, winner: Json, rival: Json) -> dict[str, Any]:
    request = record.get("request") or {}
    return _base(record) | {
        "rival": rival["endpoint"],
        "seconds": abs(_difference(winner, rival, ("total",))),
        "margin": _difference(winner, rival, ("total",)),
        "total": _total(winner),
        "prompt_tokens": request.get("prompt_tokens"),
        "hit_tokens": int(winner.get("hit_tokens") or 0),
        "rival_hit_tokens": int(rival.get("hit_tokens") or 0),
    }


def _difference(winner: Json, rival: Json, names: tuple[str, ...]) -> float:
    """How many seconds less the winner needs in some terms."""
    return sum(
        (rival["terms"].get(name) or 0.0) - (winner["terms"].get(name) or 0.0) for name in names
    )


def _by_policy(facts: dict[str, Any]) -> Reason:
    if facts["margin"] < -EQUAL_SECONDS:
        return Reason(kind="policy-dearer", facts=facts)
    return Reason(kind="policy-cheapest", facts=facts)


def _by_price(facts: dict[str, Any], winner: Json, rival: Json) -> Reason:
    has_longer_hit = facts["hit_tokens"] > facts["rival_hit_tokens"]
    if facts["margin"] < -EQUAL_SECONDS:
        if facts["hit_tokens"] < facts["rival_hit_tokens"]:
            return Reason(kind="new-home", facts=facts)
        return Reason(kind="home" if has_longer_hit else "near-tie", facts=facts)
    if facts["margin"] <= EQUAL_SECONDS:
        return Reason(kind="tie-hit" if has_longer_hit else "tie", facts=facts)
    gains = {name: _difference(winner, rival, terms) for name, terms in FACTORS.items()}
    factor = max(gains, key=lambda name: gains[name])
    first, *_ = FACTORS[factor]
    numbers = {
        "gain": gains[factor],
        "ours": winner["terms"].get(first) or 0.0,
        "theirs": rival["terms"].get(first) or 0.0,
        "tpot": winner["terms"].get("tpot") or 0.0,
        "rival_tpot": rival["terms"].get("tpot") or 0.0,
    }
    if factor == "prompt":
        factor = "cache" if has_longer_hit else "prefill"
    return Reason(kind=f"price-{factor}", facts=facts | numbers)
