"""Arithmetic of money: exact decimals, and one way to split an amount."""

from collections.abc import Mapping
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TypeVar

K = TypeVar("K", bound=str)

AMOUNT_STEP = Decimal("0.0000000001")
"""Ten decimals: the smallest step of a stored amount."""
PRICE_STEP = Decimal("0.000000000001")
"""Twelve decimals: the smallest step of a unit price."""

EXACT = Context(prec=60)
"""Precision for intermediate results: far above numeric(28, 10), so that nothing is lost."""


class MoneyError(ValueError):
    """An amount cannot be computed from these figures; the message says why."""


def rounded(amount: Decimal, step: Decimal = AMOUNT_STEP) -> Decimal:
    """The amount at the given step, halves to even."""
    return amount.quantize(step, rounding=ROUND_HALF_EVEN, context=EXACT)


def divided(amount: Decimal, by: Decimal) -> Decimal:
    """Quotient with 60 digits, before any rounding."""
    return EXACT.divide(amount, by)


def split_exact(
    total: Decimal, weights: Mapping[K, Decimal], *, step: Decimal = AMOUNT_STEP
) -> dict[K, Decimal]:
    """Split an amount by weights into parts that sum to it exactly (largest remainder).

    The total must be a multiple of `step`; it may be negative. Steps that are left over go to the
    largest remainders, ties by key. A weight of 0 gets nothing. Raises MoneyError for negative
    weights and when all weights are 0, because then nobody says where the money goes.
    """
    if any(weight < 0 for weight in weights.values()):
        raise MoneyError("A weight is negative; weights are 0 or more.")
    whole = sum(weights.values(), Decimal(0))
    if whole == 0:
        raise MoneyError("All weights are 0, so the amount belongs to nobody.")
    if rounded(total, step) != total:
        raise MoneyError(f"The total {total} is finer than {step}; round it before it is split.")
    sign = -1 if total < 0 else 1
    exact = {
        key: divided(EXACT.multiply(abs(total), weight), whole) for key, weight in weights.items()
    }
    parts = {
        key: value.quantize(step, rounding=ROUND_FLOOR, context=EXACT)
        for key, value in exact.items()
    }
    missing = int((abs(total) - sum(parts.values(), Decimal(0))) / step)
    by_remainder = sorted(
        (key for key in parts if weights[key] > 0), key=lambda key: (parts[key] - exact[key], key)
    )
    for key in by_remainder[:missing]:
        parts[key] += step
    return {key: sign * part for key, part in parts.items()}
