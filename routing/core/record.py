"""A decision as JSON-able values, for records, explanations and replays: no prompt text in it.

Bounded whatever the size of the pool: the cheapest candidates are listed one by one, of the others
it is said how many there were. Unknown numbers are null. Seconds are rounded to microseconds, but
not in `inputs`, from which a replay computes the same price again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from routing.core.decision import Candidates, Decision, Predicted, Refusal, ShadowChoice
from routing.core.price_terms import BestTerms
from routing.core.request import InferenceRequest, RequestFacts
from routing.core.table import Floats

MOST_CANDIDATES = 64
MOST_REJECTED = 256
_TIE_SECONDS = 1e-9
_SIZES = (
    "prompt_tokens", "max_tokens", "n", "stream", "has_exact_tokens", "is_multimodal",
    "uses_tools", "has_output", "can_split",
)  # fmt: skip


def record_of(decision: Decision, *, with_candidates: bool = True) -> dict[str, Any]:
    """The record of a decision.

    `candidates` and `inputs` are null when candidates are left out: they are most of the work and
    of the size.
    """
    found = decision.candidates
    rejected = list(decision.rejected.items())
    return {
        "id": decision.id,
        "request_id": decision.request_id,
        "policy": decision.policy,
        "pool": decision.pool,
        "document_version": decision.document_version,
        "decided_at": decision.decided_at,
        "destination": decision.destination,
        "fallbacks": list(decision.fallbacks),
        "prefill": decision.prefill,
        "refusal": _struct(decision.refusal, Refusal),
        "predicted": _struct(decision.predicted, Predicted),
        "margin_seconds": number(decision.margin_seconds),
        "runner_up": decision.runner_up,
        "reason": decision.reason,
        "decided_by": decided_by(decision),
        "request": request_facts(decision.request),
        "candidates": _candidates(decision) if with_candidates else None,
        "candidate_count": 0 if found is None else len(found.rows),
        "rejected": [
            {"endpoint": endpoint, "rule": rule} for endpoint, rule in rejected[:MOST_REJECTED]
        ],
        "removed": {rule: int(mask.sum()) for rule, mask in decision.removed},
        "degraded": list(decision.degraded),
        "shadows": [_struct(choice, ShadowChoice) for choice in decision.shadows],
        "inputs": decision.inputs if with_candidates else None,
    }


def kept_rows(decision: Decision) -> list[int]:
    """Rows of the candidates that are listed, cheapest first; destination and fallbacks always."""
    found = decision.candidates
    if found is None:
        return []
    rows = found.rows
    if found.terms is not None:
        rows = rows[np.argsort(found.terms.total[rows], kind="stable")]
    if len(rows) <= MOST_CANDIDATES:
        return [int(row) for row in rows]
    named = {decision.destination, decision.runner_up, *decision.fallbacks}
    wanted = [row for row in rows.tolist() if decision.endpoint_ids[row] in named]
    others = [row for row in rows.tolist() if decision.endpoint_ids[row] not in named]
    kept = {*wanted, *others[: MOST_CANDIDATES - len(wanted)]}
    return [row for row in rows.tolist() if row in kept]


def decided_by(decision: Decision) -> str:
    """Which rule decided: the code of a refusal, `only-candidate`, `home`, `tie`, `price`, or the
    name of a policy that has no price.
    """
    if decision.refusal is not None:
        return decision.refusal.code
    found = decision.candidates
    if found is not None and len(found.rows) == 1:
        return "only-candidate"
    if decision.policy != "consort":
        return decision.policy
    margin = decision.margin_seconds
    if margin is not None and margin < -_TIE_SECONDS:
        return "home" if "hit" in decision.reason or "home" in decision.reason else "tie"
    return "tie" if margin is not None and margin <= _TIE_SECONDS else "price"


def request_facts(request: InferenceRequest | None) -> dict[str, Any] | None:
    """Who asked and how much; of the prompt its size, and keys by which equal prefixes are seen."""
    if request is None:
        return None
    facts = {name: _plain(getattr(request, name)) for name in RequestFacts.__struct_fields__}
    facts |= {name: getattr(request.parsed, name) for name in _SIZES}
    keys = request.parsed.block_keys
    facts["prefix"] = (
        {"first": f"{int(keys[0]):016x}", "last": f"{int(keys[-1]):016x}", "blocks": len(keys)}
        if len(keys)
        else None
    )
    return facts


def number(value: Any) -> int | float | None:
    """JSON has no NaN and no infinity: both are written as null, "no data"."""
    if value is None or isinstance(value, int):
        return value
    known = float(value)
    return round(known, 6) if np.isfinite(known) else None


def _candidates(decision: Decision) -> list[dict[str, Any]]:
    found = decision.candidates
    if found is None:
        return []
    return [_candidate(decision, found, row) for row in kept_rows(decision)]


def _candidate(decision: Decision, found: Candidates, row: int) -> dict[str, Any]:
    prefill, terms, other = -1, {}, None
    if found.terms is not None:
        way, column = found.terms.at(row)
        prefill, terms = found.terms.prefill_at(row), way.by_name(column)
        other = _other_way(decision, found.terms, row)
    return {
        "endpoint": decision.endpoint_ids[row],
        "prefill": None if prefill < 0 else decision.endpoint_ids[prefill],
        "hit_tokens": _at(found.hit_tokens, row),
        "signal_age_seconds": _at(found.signal_age_seconds, row),
        "terms": {name: number(value) for name, value in terms.items()},
        "other_way": other,
        "scores": {
            name: {"weight": weight, "score": number(scores[row])}
            for name, weight, scores in decision.scores
        },
    }


def _other_way(decision: Decision, terms: BestTerms, row: int) -> dict[str, Any] | None:
    """How much dearer the way that was not taken is: through the best pair, or without one."""
    found = terms.other_at(row)
    if found is None or not np.isfinite(found[0]):
        return None
    total, prefill = found
    return {
        "prefill": None if prefill < 0 else decision.endpoint_ids[prefill],
        "gain_seconds": number(total - float(terms.total[row])),
    }


def _at(column: Floats | None, row: int) -> int | float | None:
    return None if column is None else number(column[row])


def _struct(value: Any, kind: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    return {name: _plain(getattr(value, name)) for name in kind.__struct_fields__}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    return value
