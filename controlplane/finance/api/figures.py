"""Figures computed from the ledger: cost per hour, per million tokens, per policy."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, viewsets
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.finance import selectors
from controlplane.finance.errors import PoolMissingError
from controlplane.finance.models import AssetCost, LedgerHour
from controlplane.finance.selectors import HourlyCost, PolicyRow
from controlplane.finance.serializers import MoneyField
from controlplane.telemetry import periods


class Figures(viewsets.GenericViewSet[Any]):
    """A computed list without pages."""

    request: ApiRequest
    pagination_class = None
    filter_backends: list[Any] = []
    view_action = "finance.view_ledger"


@dataclass(frozen=True, slots=True)
class _NodeCost:
    node: str
    cost: HourlyCost

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cost, name)


class NodeCostOutput(serializers.Serializer[Any]):
    """Cost of a node for one full hour."""

    node = serializers.CharField()
    depreciation = MoneyField()
    finance = MoneyField()
    power = MoneyField()
    total = MoneyField()
    per_accelerator = MoneyField()
    accelerators = serializers.IntegerField()
    power_source = serializers.CharField()
    evidence = serializers.CharField()


class NodeCostListOutput(serializers.Serializer[Any]):
    """Costs at a moment."""

    items = NodeCostOutput(many=True)
    as_of = serializers.DateTimeField()


class NodeCostViewSet(Figures):
    """What nodes cost per hour."""

    queryset = AssetCost.objects.none()
    serializer_class = NodeCostOutput

    @extend_schema(operation_id="node_costs_list", responses=NodeCostListOutput)
    def list(self, request: ApiRequest) -> Response:
        """Cost of the running hour by node; a node without a recorded cost is left out."""
        now = timezone.now()
        names = dict(
            selectors.asset_costs_for_viewer(request.user).values_list("node", "node__hostname")
        )
        costs = selectors.cost_per_hour(names, at=now)
        rows = sorted(
            (_NodeCost(names[node], cost) for node, cost in costs.items()),
            key=lambda row: row.node,
        )
        return Response(NodeCostListOutput({"items": rows, "as_of": now}).data)


class UnitCostOutput(serializers.Serializer[Any]):
    """Cost of a phase by role, with the utilisation that it goes with."""

    pool = serializers.CharField()
    role = serializers.CharField()
    phase = serializers.CharField()
    cost = MoneyField()
    tokens = serializers.IntegerField(allow_null=True)
    cost_per_million_tokens = MoneyField()
    method = serializers.CharField()
    utilisation = serializers.FloatField(allow_null=True)
    coverage = serializers.FloatField(allow_null=True)
    sources = serializers.ListField(child=serializers.CharField())


class UnitCostListOutput(serializers.Serializer[Any]):
    """Unit costs over a period."""

    items = UnitCostOutput(many=True)
    period_start = serializers.DateTimeField()
    period_end = serializers.DateTimeField()
    as_of = serializers.DateTimeField()


class UnitCostViewSet(Figures):
    """What a million tokens cost, by role."""

    queryset = LedgerHour.objects.none()
    serializer_class = UnitCostOutput
    query_parameters = periods.PARAMETERS

    @extend_schema(
        operation_id="unit_costs_list", responses=UnitCostListOutput, parameters=periods.SCHEMA
    )
    def list(self, request: ApiRequest) -> Response:
        """Over the hours that start in the period; the last 24 hours without one."""
        start, end = periods.period_of(request.query_params, default=timedelta(days=1))
        hours = selectors.ledger_for_viewer(request.user)
        answer = {
            "items": selectors.unit_costs(hours, start=start, end=end),
            "period_start": start,
            "period_end": end,
            "as_of": timezone.now(),
        }
        return Response(UnitCostListOutput(answer).data)


@dataclass(frozen=True, slots=True)
class _Policy:
    row: PolicyRow

    def __getattr__(self, name: str) -> Any:
        row = object.__getattribute__(self, "row")
        return getattr(row, name) if hasattr(row, name) else getattr(row.figures, name)


class PolicyOutput(serializers.Serializer[Any]):
    """What clients saw under a policy, and what the pool cost meanwhile."""

    policy = serializers.CharField()
    requests_ok = serializers.IntegerField()
    requests_failed = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    output_tokens = serializers.IntegerField()
    ttft_p50_s = serializers.FloatField(source="ttft_p50_seconds", allow_null=True)
    ttft_p90_s = serializers.FloatField(source="ttft_p90_seconds", allow_null=True)
    output_tokens_per_s = serializers.FloatField(source="output_tokens_per_second", allow_null=True)
    prefix_hit_rate = serializers.FloatField(allow_null=True)
    cost = MoneyField()
    cost_per_million_output_tokens = MoneyField()
    first_request_at = serializers.DateTimeField()
    last_response_at = serializers.DateTimeField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field, no attribute


class PolicyDifferenceOutput(serializers.Serializer[Any]):
    """A policy against the baseline; `word` says how much the difference is worth."""

    policy = serializers.CharField()
    baseline = serializers.CharField()
    ttft_p50_ratio = serializers.FloatField(allow_null=True)
    ttft_p90_ratio = serializers.FloatField(allow_null=True)
    output_tokens_per_s_ratio = serializers.FloatField(
        source="output_tokens_per_second_ratio", allow_null=True
    )
    prefix_hit_rate_ratio = serializers.FloatField(allow_null=True)
    cost_per_million_output_tokens_difference = MoneyField()
    cost_ratio = serializers.FloatField(allow_null=True)
    word = serializers.CharField()


class PolicyComparisonOutput(serializers.Serializer[Any]):
    """Policies of one pool in one window."""

    pool = serializers.CharField()
    project = serializers.CharField(allow_null=True)
    period_start = serializers.DateTimeField(source="start")
    period_end = serializers.DateTimeField(source="end")
    items = PolicyOutput(many=True)
    differences = PolicyDifferenceOutput(many=True)
    word = serializers.CharField()
    as_of = serializers.DateTimeField()


class PolicyComparisonViewSet(Figures):
    """Routing policies side by side."""

    queryset = LedgerHour.objects.none()
    serializer_class = PolicyComparisonOutput
    query_parameters = (*periods.PARAMETERS, "pool", "project")

    @extend_schema(
        operation_id="policy_comparisons_list",
        responses=PolicyComparisonOutput,
        parameters=[
            *periods.SCHEMA,
            OpenApiParameter("pool", str, required=True),
            OpenApiParameter("project", str),
        ],
    )
    def list(self, request: ApiRequest) -> Response:
        """By the attempts that ended in the period; the last 24 hours without one."""
        query = request.query_params
        start, end = periods.period_of(query, default=timedelta(days=1))
        if not query.get("pool"):
            raise PoolMissingError
        found = selectors.policy_comparison(
            pool=query["pool"], project=query.get("project") or None, start=start, end=end
        )
        answer = {
            "pool": found.pool,
            "project": found.project,
            "start": found.start,
            "end": found.end,
            "items": [_Policy(row) for row in found.rows],
            "differences": found.differences,
            "word": found.word,
            "as_of": timezone.now(),
        }
        return Response(PolicyComparisonOutput(answer).data)
