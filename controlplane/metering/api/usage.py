"""Usage and reconciliations in the API: read only."""

from datetime import timedelta
from typing import Any

from django.db.models import Count, Q, Sum
from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.metering import digest, selectors
from controlplane.metering.api.reads import Reads
from controlplane.metering.errors import GroupingError, TooManyRowsError
from controlplane.metering.models import Reconciliation, UsageHour
from controlplane.telemetry import periods

MAX_ROWS = 10_000


class UsageOutput(serializers.Serializer[Any]):
    """Sums of one group and period."""

    period_start = serializers.DateTimeField(allow_null=True)
    group = serializers.DictField(child=serializers.CharField())
    requests = serializers.DictField(source="counts", child=serializers.IntegerField())
    tokens = serializers.DictField(source="buckets", child=serializers.IntegerField())
    total_tokens = serializers.IntegerField()
    waste = serializers.DictField(child=serializers.IntegerField())
    first_request_at = serializers.DateTimeField(allow_null=True)
    last_response_at = serializers.DateTimeField(allow_null=True)
    sources = serializers.ListField(child=serializers.CharField())
    complete = serializers.BooleanField()
    data_quality = serializers.ListField(child=serializers.CharField())


class UsageListOutput(serializers.Serializer[Any]):
    """Sums with how far they are complete."""

    items = UsageOutput(many=True)
    watermark = serializers.DateTimeField(allow_null=True)
    as_of = serializers.DateTimeField()


class UsageFilter(filters.FilterSet):
    tenant = filters.CharFilter()
    project = filters.CharFilter()
    model = filters.CharFilter()
    role = filters.CharFilter()
    key = filters.CharFilter()
    pool = filters.CharFilter()
    node = filters.CharFilter()
    policy = filters.CharFilter()
    source = filters.CharFilter()

    class Meta:
        model = UsageHour
        fields: list[str] = []


class UsageViewSet(viewsets.GenericViewSet[UsageHour]):
    """Requests and tokens, summed as asked for."""

    request: ApiRequest
    queryset = UsageHour.objects.none()
    serializer_class = UsageOutput
    filterset_class = UsageFilter
    pagination_class = None
    query_parameters = (*periods.PARAMETERS, "granularity", "group_by")

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.usage_hours_for_viewer(self.request.user)

    @extend_schema(
        operation_id="usage_list",
        responses=UsageListOutput,
        parameters=[
            *periods.SCHEMA,
            OpenApiParameter("granularity", str, enum=list(selectors.GRANULARITIES)),
            OpenApiParameter(
                "group_by", str, description=f"Comma-separated: {', '.join(selectors.GROUPS)}."
            ),
        ],
    )
    def list(self, request: ApiRequest) -> Response:
        """Sums over the hours that start in the period, in UTC."""
        query = request.query_params
        start, end = periods.period_of(query, default=timedelta(days=1))
        hours = selectors.usage_between(
            self.filter_queryset(self.get_queryset()), start=start, end=end
        )
        rows = selectors.usage_grouped(
            hours,
            group_by=_groups(query.get("group_by", "")),
            granularity=_granularity(query),
            limit=MAX_ROWS + 1,
        )
        if len(rows) > MAX_ROWS:
            raise TooManyRowsError(limit=MAX_ROWS)
        answer = {"items": rows, "watermark": selectors.watermark(), "as_of": timezone.now()}
        return Response(UsageListOutput(answer).data)


def _groups(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in selectors.GROUPS:
            raise GroupingError(
                parameter="group_by", value=name, allowed=", ".join(selectors.GROUPS)
            )
    return list(dict.fromkeys(names))


def _granularity(query: Any) -> str | None:
    name: str | None = query.get("granularity") or None
    if name is not None and name not in selectors.GRANULARITIES:
        raise GroupingError(
            parameter="granularity", value=name, allowed=", ".join(selectors.GRANULARITIES)
        )
    return name


class LatencyOutput(serializers.Serializer[Any]):
    """Quantiles in seconds, within 2 %."""

    p50 = serializers.FloatField(allow_null=True)
    p90 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)


class UsageHourOutput(serializers.ModelSerializer[UsageHour]):
    """One hour of one key on one node."""

    ttft_seconds = serializers.SerializerMethodField()
    tpot_seconds = serializers.SerializerMethodField()

    class Meta:
        model = UsageHour
        read_only_fields = fields = [
            "id", "hour", "tenant", "project", "key", "pool", "node", "role", "model", "policy",
            "source", *UsageHour.COUNTS, *UsageHour.BUCKETS, *UsageHour.WASTE, "ttft_seconds",
            "tpot_seconds", "first_request_at", "last_response_at",
        ]  # fmt: skip

    @extend_schema_field(LatencyOutput)
    def get_ttft_seconds(self, row: UsageHour) -> dict[str, float | None]:
        """Time to the first token, of answered requests."""
        return _quantiles(row.ttft_digest)

    @extend_schema_field(LatencyOutput)
    def get_tpot_seconds(self, row: UsageHour) -> dict[str, float | None]:
        """Time per output token, of answered requests."""
        return _quantiles(row.tpot_digest)


def _quantiles(counts: dict[str, int]) -> dict[str, float | None]:
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95}
    return {name: digest.quantile(counts, share) for name, share in shares.items()}


class UsageHourFilter(UsageFilter):
    hour__gte = filters.IsoDateTimeFilter(field_name="hour", lookup_expr="gte")
    hour__lt = filters.IsoDateTimeFilter(field_name="hour", lookup_expr="lt")

    class Meta:
        model = UsageHour
        fields: list[str] = []


class UsageHourViewSet(Reads):
    """Hours of usage as they are stored."""

    queryset = UsageHour.objects.none()
    serializer_class = UsageHourOutput
    filterset_class = UsageHourFilter
    sort_fields = {"hour": "hour"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.usage_hours_for_viewer(self.request.user)


class ReconciliationOutput(serializers.ModelSerializer[Reconciliation]):
    """Two counts of one hour and their difference; null is not reconciled."""

    class Meta:
        model = Reconciliation
        read_only_fields = fields = [
            "id", "hour", "pool", "gateway_tokens", "engine_tokens", "probe_tokens",
            "unattributed_tokens", "source", "updated_at",
        ]  # fmt: skip


class ReconciliationTotals(serializers.Serializer[Any]):
    """Sums over hours; engine figures are null as soon as one hour is not reconciled."""

    hours = serializers.IntegerField()
    hours_not_reconciled = serializers.IntegerField()
    gateway_tokens = serializers.IntegerField(allow_null=True)
    engine_tokens = serializers.IntegerField(allow_null=True)
    probe_tokens = serializers.IntegerField(allow_null=True)
    engine_client_tokens = serializers.IntegerField(allow_null=True)
    """Engine tokens without probes and first prompts: what gateway_tokens should equal."""
    unattributed_tokens = serializers.IntegerField(allow_null=True)
    as_of = serializers.DateTimeField(allow_null=True)


class ReconciliationFilter(filters.FilterSet):
    pool = filters.CharFilter()
    hour__gte = filters.IsoDateTimeFilter(field_name="hour", lookup_expr="gte")
    hour__lt = filters.IsoDateTimeFilter(field_name="hour", lookup_expr="lt")

    class Meta:
        model = Reconciliation
        fields: list[str] = []


class ReconciliationViewSet(Reads):
    """Routers' and engines' tokens side by side."""

    queryset = Reconciliation.objects.none()
    serializer_class = ReconciliationOutput
    filterset_class = ReconciliationFilter
    query_parameters = tuple(ReconciliationFilter.base_filters)
    sort_fields = {"hour": "hour"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.reconciliations_for_viewer(self.request.user)

    @extend_schema(operation_id="reconciliations_totals", responses=ReconciliationTotals)
    @action(detail=False, pagination_class=None)
    def totals(self, request: ApiRequest) -> Response:
        """Sums over the hours that pass the filters."""
        rows = self.filter_queryset(self.get_queryset())
        sums = rows.order_by().aggregate(
            hours=Count("pk"),
            hours_not_reconciled=Count("pk", filter=Q(engine_tokens__isnull=True)),
            gateway=Sum("gateway_tokens"),
            engine=Sum("engine_tokens"),
            probe=Sum("probe_tokens"),
            unattributed=Sum("unattributed_tokens"),
        )
        newest = rows.order_by("-updated_at").values_list("updated_at", flat=True).first()
        return Response(ReconciliationTotals(_totals(sums) | {"as_of": newest}).data)


def _totals(sums: dict[str, Any]) -> dict[str, Any]:
    known = sums["hours"] and not sums["hours_not_reconciled"]
    return {
        "hours": sums["hours"],
        "hours_not_reconciled": sums["hours_not_reconciled"],
        "gateway_tokens": sums["gateway"],
        "probe_tokens": sums["probe"],
        "engine_tokens": sums["engine"] if known else None,
        "engine_client_tokens": sums["engine"] - sums["probe"] if known else None,
        "unattributed_tokens": sums["unattributed"] if known else None,
    }
