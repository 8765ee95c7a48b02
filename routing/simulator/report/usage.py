"""What the endpoints of a fleet did in a stage, what they cost and what they drew.

Cost is the price of every endpoint for the whole stage, used or not: hardware that is owned or
rented is paid while it idles. Energy counts the stated draw for busy time, and a share of it
(`prices.yaml`) for the rest; a replica whose process is down still has its accelerator powered.
Both are modelled from prices and draws that somebody claims.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal

import msgspec

from routing.core.document import EndpointSpec, PoolDocument
from routing.simulator.engine.time_spent import Spent
from routing.simulator.report.prices import idle_share
from routing.simulator.requests import Course

CENT_OF_A_CENT = Decimal("0.0001")
SECONDS_PER_HOUR = 3600


class Phases(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of replicas by what they went to; a step with prompt chunks is split by time."""

    prefill: float
    decode: float
    idle: float
    down: float

    @property
    def busy(self) -> float:
        """Prefill and decode."""
        return self.prefill + self.decode


class ReplicaReport(msgspec.Struct, frozen=True, kw_only=True):
    """One endpoint in one stage."""

    endpoint: str
    speed_class: str
    role: str
    answered: int
    """Requests whose answer it made."""
    prefilled: int
    """Answered requests whose prompt it computed."""
    output_tokens: int
    prefix_hit_rate: float | None
    """Of the prompts that it computed."""
    spent: Phases
    energy_wh: float | None
    """Modelled; `None` without a stated draw."""


def phases_between(before: Spent, after: Spent) -> Phases:
    """What the time between two moments went to."""
    return Phases(
        prefill=after.prefill - before.prefill,
        decode=after.decode - before.decode,
        idle=after.idle - before.idle,
        down=after.down - before.down,
    )


def phases_of(parts: Sequence[Phases]) -> Phases:
    """Their sum."""
    return Phases(
        prefill=sum(part.prefill for part in parts),
        decode=sum(part.decode for part in parts),
        idle=sum(part.idle for part in parts),
        down=sum(part.down for part in parts),
    )


def replica_reports(
    document: PoolDocument, courses: Sequence[Course], spent: Mapping[str, Phases]
) -> tuple[ReplicaReport, ...]:
    """One per endpoint, in the document's order, over the answered requests of `courses`."""
    answered = [course for course in courses if course.outcome == "ok"]
    return tuple(_replica(spec, answered, spent[spec.id]) for spec in document.endpoints)


def _replica(spec: EndpointSpec, answered: Sequence[Course], spent: Phases) -> ReplicaReport:
    own = [course for course in answered if course.destination == spec.id]
    computed = [course for course in answered if (course.prefill or course.destination) == spec.id]
    prompt = sum(course.arrival.prompt.tokens for course in computed)
    cached = sum(course.cached_tokens for course in computed)
    return ReplicaReport(
        endpoint=spec.id,
        speed_class=spec.speed_class,
        role=spec.role,
        answered=len(own),
        prefilled=len(computed),
        output_tokens=sum(course.output_tokens for course in own),
        prefix_hit_rate=cached / prompt if prompt else None,
        spent=spent,
        energy_wh=energy_wh(spec.watts, spent),
    )


def energy_wh(watts: float | None, spent: Phases) -> float | None:
    """Modelled watt-hours of one replica; `None` without a stated draw."""
    if watts is None:
        return None
    loaded = spent.busy + idle_share() * (spent.idle + spent.down)
    return watts * loaded / SECONDS_PER_HOUR


def cost_of(document: PoolDocument, seconds: float) -> Decimal | None:
    """Price of all endpoints for a time, in the document's currency; `None` if one has no price."""
    prices = [spec.price_per_hour for spec in document.endpoints]
    known = [Decimal(price) for price in prices if price is not None]
    if len(known) < len(prices):
        return None
    hours = Decimal(repr(seconds)) / SECONDS_PER_HOUR
    return (sum(known, Decimal(0)) * hours).quantize(CENT_OF_A_CENT, ROUND_HALF_EVEN)


def cost_per_million(cost: Decimal | None, tokens: int) -> Decimal | None:
    """Of a million tokens; `None` without a cost or a token."""
    if cost is None or not tokens:
        return None
    return (cost * 1_000_000 / tokens).quantize(CENT_OF_A_CENT, ROUND_HALF_EVEN)
