"""The savings calculator: accelerators for a number of requests in flight, before and after. Pure.

    accelerators = concurrency / in flight within the target x accelerators of the pool

It is arithmetic on what somebody states or measured, so its method is "modelled"; a saving without
its price, concurrency, target and pool says nothing, and it may be negative.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import Literal

METHOD = "modelled"
HOURS_A_YEAR = Decimal(8760)
COUNT_STEP = Decimal("0.1")
MONEY_STEP = Decimal("0.01")
_EXACT = Context(prec=80)
"""Digits for the product of five inputs of 20 digits each; the usual 28 end in an error."""


Edge = Literal["measured", "at-least", "less-than"]
"""Of requests in flight within the limit: found between two measured loads; the largest that was
measured, which was still within; or the smallest that was measured, which was not."""

Bound = Literal["exact", "at-least", "at-most", "open"]
"""What a saving is, if one or both sides end at the edge of what was measured."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """Requests in flight within a limit."""

    count: Decimal
    edge: Edge = "measured"


@dataclass(frozen=True, slots=True)
class Point:
    """A pool at some load: requests in flight and mean TTFT."""

    in_flight: Decimal
    ttft_seconds: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the calculator is asked. Money per accelerator-hour."""

    price: Decimal
    concurrency: Decimal
    ttft_limit_seconds: Decimal
    pool_accelerators: Decimal
    in_flight_before: Decimal
    """That the pool holds within the limit under the baseline."""
    in_flight_after: Decimal
    edge_before: Edge = "measured"
    edge_after: Edge = "measured"
    hours: Decimal = HOURS_A_YEAR


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Counts have one decimal and money is computed from them, so that a reader can do it again."""

    accelerators_before: Decimal
    accelerators_after: Decimal
    accelerator_hours_freed: Decimal
    """Negative when more are needed."""
    amount: Decimal
    """Value of those hours at the price; no cash until something is bought, sold or not bought."""
    bound: Bound = "exact"
    """What hours and amount are: at least so much if the baseline cannot serve the load that was
    measured, or the new way could serve more."""
    method: str = METHOD


def compute(question: Question) -> Saving:
    """The saving, positive or negative."""
    with localcontext(_EXACT):
        before = accelerators_for(question, question.in_flight_before)
        after = accelerators_for(question, question.in_flight_after)
        found = saving_of(before, after, price=question.price, hours=question.hours)
        return replace(found, bound=bound_of(question.edge_before, question.edge_after))


def bound_of(before: Edge, after: Edge) -> Bound:
    """More in flight before makes the saving smaller, more in flight after makes it larger."""
    is_least = before == "less-than" or after == "at-least"
    is_most = before == "at-least" or after == "less-than"
    if is_least and is_most:
        return "open"
    return "at-least" if is_least else "at-most" if is_most else "exact"


def accelerators_for(question: Question, in_flight: Decimal) -> Decimal:
    """Accelerators that hold the concurrency within the limit, with one decimal."""
    count = question.concurrency / in_flight * question.pool_accelerators
    return count.quantize(COUNT_STEP, ROUND_HALF_EVEN)


def saving_of(before: Decimal, after: Decimal, *, price: Decimal, hours: Decimal) -> Saving:
    """What another number of accelerators is worth."""
    freed = (before - after) * hours
    return Saving(
        accelerators_before=before,
        accelerators_after=after,
        accelerator_hours_freed=freed,
        amount=(freed * price).quantize(MONEY_STEP, ROUND_HALF_EVEN),
    )


def in_flight_within(points: Sequence[Point], limit: Decimal) -> InFlight | None:
    """Requests in flight at which the mean TTFT first reaches the limit, between measured points.

    At the edges it is only known to be at least the last point, when all are within, or less than
    the first, when that is not. `None` without points.
    """
    ordered = sorted(points, key=lambda point: point.in_flight)
    if not ordered:
        return None
    last: Point | None = None
    for point in ordered:
        if point.ttft_seconds > limit:
            if last is None:
                return InFlight(point.in_flight, "less-than")
            return InFlight(_between(last, point, limit))
        last = point
    return InFlight(ordered[-1].in_flight, "at-least")


def _between(low: Point, high: Point, limit: Decimal) -> Decimal:
    share = (limit - low.ttft_seconds) / (high.ttft_seconds - low.ttft_seconds)
    return low.in_flight + share * (high.in_flight - low.in_flight)
