"""How a role's cost is split between prompt and output, and what a million tokens of each cost.

- `role_ledger_exact`: of the prompt tokens that prefill and decode engines computed, at most 1 %
  were computed on decode engines, so the roles are the phases.
- `phase_time_measured`: role `both`, or the limit is passed; seconds of prefill to seconds of
  decode, as the engines measured them.
- `token_weight_2_5`: no phase times; an output token weighs 2.5 computed prompt tokens (assumed).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from controlplane.finance.money import EXACT, PRICE_STEP, divided, rounded, split_exact


class Method(StrEnum):
    """How the split was made; printed beside the figure."""

    ROLE_LEDGER_EXACT = "role_ledger_exact"
    PHASE_TIME_MEASURED = "phase_time_measured"
    TOKEN_WEIGHT_2_5 = "token_weight_2_5"  # noqa: S105 - tokens of a model, not a secret


LOCAL_PREFILL_LIMIT = 0.01
OUTPUT_WEIGHT = Decimal("2.5")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleUse:
    """What engines of one role did in a period; None is unknown."""

    prompt_computed_tokens: int | None = None
    output_tokens: int | None = None
    prefill_seconds: float | None = None
    decode_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Phases:
    """A role's cost by phase; None if the role has no such phase, or nobody knows the split."""

    prompt: Decimal | None
    output: Decimal | None


def method_of(role: str, uses: Mapping[str, RoleUse]) -> str:
    """Method for a role from the uses of all roles of its pool."""
    if role == "prefill":
        return Method.ROLE_LEDGER_EXACT
    if role == "decode" and _is_separate(uses):
        return Method.ROLE_LEDGER_EXACT
    use = uses.get(role, RoleUse())
    times = (use.prefill_seconds, use.decode_seconds)
    if None not in times and any(times):
        return Method.PHASE_TIME_MEASURED
    return Method.TOKEN_WEIGHT_2_5


def split_phases(cost: Decimal, role: str, use: RoleUse, method: str) -> Phases:
    """Cost of the phases; they sum to the cost exactly, if the split is known at all."""
    if method == Method.ROLE_LEDGER_EXACT:
        return Phases(cost, None) if role == "prefill" else Phases(None, cost)
    weights = _weights(use, method)
    if not any(weights.values()):
        return Phases(None, None)
    parts = split_exact(cost, weights)
    return Phases(parts["prompt"], parts["output"])


def per_million(cost: Decimal, tokens: int | None) -> Decimal | None:
    """Cost of a million tokens at twelve decimals; None without tokens."""
    if not tokens:
        return None
    return rounded(divided(EXACT.multiply(cost, Decimal(1_000_000)), Decimal(tokens)), PRICE_STEP)


def _weights(use: RoleUse, method: str) -> dict[str, Decimal]:
    if method == Method.PHASE_TIME_MEASURED:
        return {
            "prompt": Decimal(str(use.prefill_seconds or 0)),
            "output": Decimal(str(use.decode_seconds or 0)),
        }
    return {
        "prompt": Decimal(use.prompt_computed_tokens or 0),
        "output": Decimal(use.output_tokens or 0) * OUTPUT_WEIGHT,
    }


def _is_separate(uses: Mapping[str, RoleUse]) -> bool:
    """True if decode engines computed next to none of the prompts of prefill and decode."""
    on_decode = uses.get("decode", RoleUse()).prompt_computed_tokens
    on_prefill = uses.get("prefill", RoleUse()).prompt_computed_tokens
    if on_decode is None or on_prefill is None:
        return False
    return on_decode <= LOCAL_PREFILL_LIMIT * (on_decode + on_prefill)
