"""Decision records by hand, with the terms that a scenario is about."""

from typing import Any

TERMS = (
    "wait", "prefill", "load", "first_step", "transfer", "warm_up", "decode", "harm", "capacity",
    "slo", "money",
)  # fmt: skip


def candidate(
    name: str,
    *,
    hit: int = 0,
    tpot: float = 0.009,
    prefill_by: str | None = None,
    other_way: tuple[str, float] | None = None,
    **terms: float,
) -> dict[str, Any]:
    """A candidate; terms that are not given are 0, decode is 1 s."""
    seconds = dict.fromkeys(TERMS, 0.0) | {"decode": 1.0} | terms
    way = other_way and {"prefill": other_way[0] or None, "gain_seconds": other_way[1]}
    return {
        "endpoint": name,
        "prefill": prefill_by,
        "hit_tokens": hit,
        "signal_age_seconds": 0.2,
        "terms": seconds | {"total": sum(seconds.values()), "tpot": tpot},
        "other_way": way,
    }


def record(
    *candidates: dict[str, Any], refusal: tuple[Any, ...] | None = None, **changed: Any
) -> dict[str, Any]:
    """A record in which the first candidate was chosen and the second is the runner-up."""
    first = candidates[0] if candidates else None
    second = candidates[1] if len(candidates) > 1 else None
    request = {"model": "granite", "prompt_tokens": 7000, "tenant": "hanbit"}
    refused = refusal and {
        "status": refusal[0],
        "code": refusal[1],
        "message": "As it was told.",
        "retry_after_seconds": refusal[2] if len(refusal) > 2 else None,
    }
    made = {
        "id": "d-1-r",
        "policy": "consort",
        "pool": "chat",
        "destination": None if refused or first is None else first["endpoint"],
        "prefill": None,
        "refusal": refused,
        "runner_up": second and second["endpoint"],
        "reason": "cheapest",
        "predicted": {
            "ttft_seconds": 0.083, "tpot_seconds": 0.009, "output_tokens": 180,
            "hit_tokens": first["hit_tokens"] if first else 0, "uncached_tokens": 856,
            "transfer_seconds": 0.13,
        },
        "candidates": list(candidates),
        "candidate_count": len(candidates),
        "rejected": [],
        "removed": {},
        "fallbacks": [],
        "degraded": [],
        "request": request | changed.pop("request", {}),
    }  # fmt: skip
    return made | changed


def shadow(
    policy: str, destination: str, regret_seconds: float, *, agrees: bool = False
) -> dict[str, Any]:
    """What a shadow policy would have done."""
    return {
        "policy": policy,
        "destination": destination,
        "agrees": agrees,
        "regret_seconds": regret_seconds,
    }
