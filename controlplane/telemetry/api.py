"""Sources, counters, utilisation and alerts in the API: read only."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema_field
from rest_framework import mixins, serializers, viewsets

from controlplane.common.http import ApiRequest
from controlplane.telemetry import selectors
from controlplane.telemetry.models import (
    Alert,
    EngineCounter,
    EngineHour,
    ScrapeTarget,
    UtilisationHour,
)


class Reads(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]):
    """A list and its rows."""

    request: ApiRequest


class SourceOutput(serializers.ModelSerializer[ScrapeTarget]):
    """A page of metrics and whether it answers."""

    node = serializers.CharField(source="node.hostname", read_only=True)
    state = serializers.SerializerMethodField()

    class Meta:
        model = ScrapeTarget
        fields = read_only_fields = [
            "id", "kind", "url", "engine", "node", "pool", "role", "endpoint", "instance", "source",
            "active", "ended_at", "state", "last_ok_at", "failing_since", "last_error",
            "created_at",
        ]  # fmt: skip

    @extend_schema_field({"type": "string", "enum": ["scraped", "not_scraped", "ended"]})
    def get_state(self, row: ScrapeTarget) -> str:
        """Silent and never read are the same to a reader: nothing is known."""
        if not row.active:
            return "ended"
        return "not_scraped" if row.failing_since or not row.last_ok_at else "scraped"


class SourceFilter(filters.FilterSet):
    node = filters.CharFilter(field_name="node__hostname")
    pool = filters.CharFilter()
    role = filters.CharFilter()
    kind = filters.ChoiceFilter(choices=ScrapeTarget.Kind.choices)
    active = filters.BooleanFilter()

    class Meta:
        model = ScrapeTarget
        fields: list[str] = []


class SourceViewSet(Reads):
    """What is scraped, and what is silent."""

    queryset = ScrapeTarget.objects.none()
    serializer_class = SourceOutput
    filterset_class = SourceFilter
    ordering = ("node__hostname", "endpoint")
    sort_fields = {"node": "node__hostname", "endpoint": "endpoint", "last_ok_at": "last_ok_at"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.targets_for_viewer(self.request.user)


class EngineCounterOutput(serializers.ModelSerializer[EngineCounter]):
    """Totals of one instance since it is ours, over resets of its counters."""

    instance = serializers.CharField(  # type: ignore[assignment]  # a field, no attribute
        source="target.instance", read_only=True
    )
    endpoint = serializers.CharField(source="target.endpoint", read_only=True)
    pool = serializers.CharField(source="target.pool", read_only=True)
    role = serializers.CharField(source="target.role", read_only=True)
    node = serializers.CharField(source="target.node.hostname", read_only=True)
    active = serializers.BooleanField(source="target.active", read_only=True)
    source = serializers.CharField(  # type: ignore[assignment]  # a field, no attribute
        source="target.source", read_only=True
    )
    as_of = serializers.DateTimeField(source="at", read_only=True)

    class Meta:
        model = EngineCounter
        fields = read_only_fields = [
            "id", "instance", "endpoint", "pool", "role", "node", "active", "source", "as_of",
            "resets", "prompt_tokens_total", "prompt_tokens_by_source", "generation_tokens_total",
            "prefix_queries_total", "prefix_hits_total", "running", "waiting", "kv_usage",
        ]  # fmt: skip


class EngineCounterFilter(filters.FilterSet):
    pool = filters.CharFilter(field_name="target__pool")
    role = filters.CharFilter(field_name="target__role")
    node = filters.CharFilter(field_name="target__node__hostname")
    instance = filters.CharFilter(field_name="target__instance")
    active = filters.BooleanFilter(field_name="target__active")

    class Meta:
        model = EngineCounter
        fields: list[str] = []


class EngineCounterViewSet(Reads):
    """What engines counted, as scraped."""

    queryset = EngineCounter.objects.none()
    serializer_class = EngineCounterOutput
    filterset_class = EngineCounterFilter
    ordering = ("target__endpoint", "target__instance")
    sort_fields = {"endpoint": "target__endpoint", "as_of": "at"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.counters_for_viewer(self.request.user)


class HourFilter(filters.FilterSet):
    """Filters that all hours share."""

    hour__gte = filters.IsoDateTimeFilter(field_name="hour", lookup_expr="gte")
    hour__lt = filters.IsoDateTimeFilter(field_name="hour", lookup_expr="lt")
    pool = filters.CharFilter()
    role = filters.CharFilter()
    source = filters.CharFilter()


class EngineHourOutput(serializers.ModelSerializer[EngineHour]):
    """What an instance did in an hour; null is unknown."""

    node = serializers.CharField(source="node.hostname", read_only=True)

    class Meta:
        model = EngineHour
        read_only_fields = fields = [
            "id", "hour", "endpoint", "instance", "pool", "role", "node", "accelerator_count",
            "samples", "expected_samples", "busy_seconds", "observed_seconds", "running_average",
            "waiting_average", "kv_usage_average", "prompt_tokens", "prompt_computed_tokens",
            "prompt_cached_tokens", "prompt_transferred_tokens", "generation_tokens",
            "prefix_queries", "prefix_hits", "prefill_seconds", "decode_seconds", "source",
        ]  # fmt: skip


class EngineHourFilter(HourFilter):
    node = filters.CharFilter(field_name="node__hostname")
    instance = filters.CharFilter()

    class Meta:
        model = EngineHour
        fields: list[str] = []


class EngineHourViewSet(Reads):
    """Hours of engines."""

    queryset = EngineHour.objects.none()
    serializer_class = EngineHourOutput
    filterset_class = EngineHourFilter
    sort_fields = {"hour": "hour"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.engine_hours_for_viewer(self.request.user)


class ObservedShare(serializers.Serializer[Any]):
    """A share, or the reason why there is none."""

    value = serializers.FloatField(allow_null=True)
    unit = serializers.CharField()
    reason = serializers.CharField(allow_null=True)
    since = serializers.DateTimeField(allow_null=True)


class UtilisationOutput(serializers.ModelSerializer[UtilisationHour]):
    """How busy an accelerator was in an hour."""

    accelerator = serializers.UUIDField(source="accelerator_id", read_only=True)
    node = serializers.CharField(source="accelerator.node.hostname", read_only=True)
    slot = serializers.IntegerField(source="accelerator.slot", read_only=True)
    vendor = serializers.CharField(source="accelerator.vendor", read_only=True)
    model = serializers.CharField(source="accelerator.model.slug", read_only=True)
    utilisation = serializers.SerializerMethodField()
    coverage = serializers.FloatField(read_only=True, allow_null=True)

    class Meta:
        model = UtilisationHour
        read_only_fields = fields = [
            "id", "hour", "accelerator", "node", "slot", "vendor", "model", "pool", "role",
            "utilisation", "memory_usage", "power_watts", "output_tokens_per_second", "samples",
            "expected_samples", "coverage", "source",
        ]  # fmt: skip

    @extend_schema_field(ObservedShare)
    def get_utilisation(self, row: UtilisationHour) -> dict[str, Any]:
        """0 is measured and idle; no value has a reason."""
        missing = row.utilisation is None
        return {
            "value": row.utilisation,
            "unit": "share",
            "reason": "not_scraped" if missing else None,
            "since": row.not_scraped_since if missing else None,
        }


class UtilisationFilter(HourFilter):
    accelerator = filters.UUIDFilter(field_name="accelerator_id")
    node = filters.CharFilter(field_name="accelerator__node__hostname")
    vendor = filters.CharFilter(field_name="accelerator__vendor")
    model = filters.CharFilter(field_name="accelerator__model__slug")

    class Meta:
        model = UtilisationHour
        fields: list[str] = []


class UtilisationViewSet(Reads):
    """Hours of accelerators."""

    queryset = UtilisationHour.objects.none()
    serializer_class = UtilisationOutput
    filterset_class = UtilisationFilter
    sort_fields = {"hour": "hour"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.utilisation_for_viewer(self.request.user)


class AlertOutput(serializers.ModelSerializer[Alert]):
    """What figures say, since when, and the numbers behind it."""

    node = serializers.CharField(source="node.hostname", read_only=True)
    slot = serializers.IntegerField(source="accelerator.slot", read_only=True, default=None)

    class Meta:
        model = Alert
        read_only_fields = fields = [
            "id", "kind", "fingerprint", "node", "accelerator", "slot", "since", "opened_at",
            "resolved_at", "facts", "source",
        ]  # fmt: skip


class AlertFilter(filters.FilterSet):
    kind = filters.ChoiceFilter(choices=Alert.Kind.choices)
    node = filters.CharFilter(field_name="node__hostname")
    resolved = filters.BooleanFilter(field_name="resolved_at", lookup_expr="isnull", exclude=True)

    class Meta:
        model = Alert
        fields: list[str] = []


class AlertViewSet(Reads):
    """Alerts, newest first."""

    queryset = Alert.objects.none()
    serializer_class = AlertOutput
    filterset_class = AlertFilter
    ordering = ("-opened_at",)
    sort_fields = {"opened_at": "opened_at", "since": "since"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.alerts_for_viewer(self.request.user)
