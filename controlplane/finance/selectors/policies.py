"""Two routing policies side by side: what clients saw, and what a million output tokens cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import Q

from controlplane.finance.money import EXACT, divided, rounded
from controlplane.finance.selectors.current import cost_per_hour
from controlplane.finance.units import per_million
from controlplane.metering import selectors as metering
from controlplane.metering.selectors import PolicyFigures
from controlplane.serving.models import AssignedAccelerator
from controlplane.telemetry.models import Evidence

ESTIMATE_SIMULATED = "estimate (simulated)"
NOT_ADJUSTED = "before and after (not adjusted)"
BASELINE = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """One policy: what its clients saw and what the pool cost meanwhile."""

    figures: PolicyFigures
    cost: Decimal | None
    currency: str
    cost_per_million_output_tokens: Decimal | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDifference:
    """A policy against the baseline; ratios are policy / baseline, None is no data."""

    policy: str
    baseline: str
    ttft_p50_ratio: float | None
    ttft_p90_ratio: float | None
    output_tokens_per_second_ratio: float | None
    prefix_hit_rate_ratio: float | None
    cost_per_million_output_tokens_difference: Decimal | None
    """Policy less baseline: negative is cheaper."""
    currency: str
    cost_ratio: float | None
    word: str
    """The rung that the difference stands on, printed beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyComparison:
    """All policies that a pool used in a window."""

    pool: str
    project: str | None
    start: datetime
    end: datetime
    rows: Sequence[PolicyRow]
    differences: Sequence[PolicyDifference]
    word: str


def policy_comparison(
    *, pool: str, project: str | None = None, start: datetime, end: datetime
) -> PolicyComparison:
    """Compare the policies of one pool by the attempts that ended in [start, end).

    The cost of a policy is what the pool's assigned accelerators cost from its first request to its
    last response, whatever they did. Differences are against `random`, or else the first policy.
    """
    source = metering.evidence_of_pool(pool)
    figures = metering.policy_figures(pool=pool, project=project, start=start, end=end)
    rows = [_row(pool, found, source) for found in figures]
    word = ESTIMATE_SIMULATED if source == Evidence.SIMULATED else NOT_ADJUSTED
    return PolicyComparison(
        pool=pool,
        project=project,
        start=start,
        end=end,
        rows=rows,
        differences=_differences(rows, word),
        word=word,
    )


def pool_cost(*, pool: str, start: datetime, end: datetime) -> tuple[Decimal | None, str]:
    """Cost of the pool's assigned accelerators in [start, end), and its currency.

    None if nothing was assigned or an assigned node has no cost: a part would look cheap.
    """
    seconds = _assigned_seconds(pool, start=start, end=end)
    costs = cost_per_hour(seconds.keys(), at=start)
    if not seconds or seconds.keys() - costs.keys():
        return None, ""
    total = Decimal(0)
    for node, used in seconds.items():
        each = costs[node].per_accelerator
        if each is None:
            return None, ""
        total += EXACT.multiply(each, divided(used, Decimal(3600)))
    return rounded(total), next(iter(costs.values())).currency


def _assigned_seconds(pool: str, *, start: datetime, end: datetime) -> dict[UUID, Decimal]:
    """Accelerator-seconds assigned to the pool in the period, by node."""
    periods = (
        AssignedAccelerator.objects.filter(
            assignment__pool__slug=pool, assignment__valid_from__lt=end
        )
        .filter(Q(assignment__valid_to__isnull=True) | Q(assignment__valid_to__gt=start))
        .values_list("assignment__node", "assignment__valid_from", "assignment__valid_to")
    )
    seconds: dict[UUID, Decimal] = {}
    for node, valid_from, valid_to in periods:
        held = min(valid_to or end, end) - max(valid_from, start)
        seconds[node] = seconds.get(node, Decimal(0)) + Decimal(str(held.total_seconds()))
    return seconds


def _row(pool: str, figures: PolicyFigures, source: str) -> PolicyRow:
    cost, currency = pool_cost(
        pool=pool, start=figures.first_request_at, end=figures.last_response_at
    )
    return PolicyRow(
        figures=figures,
        cost=cost,
        currency=currency,
        cost_per_million_output_tokens=(
            None if cost is None else per_million(cost, figures.output_tokens)
        ),
        source=source,
    )


def _differences(rows: Sequence[PolicyRow], word: str) -> list[PolicyDifference]:
    if len(rows) < 2:
        return []
    baseline = next((row for row in rows if row.figures.policy == BASELINE), rows[0])
    return [_difference(row, baseline, word) for row in rows if row is not baseline]


def _difference(row: PolicyRow, baseline: PolicyRow, word: str) -> PolicyDifference:
    ours, theirs = row.figures, baseline.figures
    cost, usual = row.cost_per_million_output_tokens, baseline.cost_per_million_output_tokens
    return PolicyDifference(
        policy=ours.policy,
        baseline=theirs.policy,
        ttft_p50_ratio=_ratio(ours.ttft_p50_seconds, theirs.ttft_p50_seconds),
        ttft_p90_ratio=_ratio(ours.ttft_p90_seconds, theirs.ttft_p90_seconds),
        output_tokens_per_second_ratio=_ratio(
            ours.output_tokens_per_second, theirs.output_tokens_per_second
        ),
        prefix_hit_rate_ratio=_ratio(ours.prefix_hit_rate, theirs.prefix_hit_rate),
        cost_per_million_output_tokens_difference=(
            None if cost is None or usual is None else cost - usual
        ),
        currency=row.currency,
        cost_ratio=float(cost / usual) if cost is not None and usual else None,
        word=word,
    )


def _ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None
