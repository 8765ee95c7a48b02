"""Lists and details of routing."""

from dataclasses import asdict
from typing import Any

from django.utils import timezone
from django_filters import rest_framework as filters
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.response import Response

from controlplane.common.errors import InvalidParameterError
from controlplane.common.http import ApiRequest
from controlplane.decisions import selectors, services
from controlplane.decisions.models import Decision, RouterReading, ShadowHour
from controlplane.serving.models import Endpoint

OBJECT = {"type": "object", "additionalProperties": {}}
MOST_HOURS = 24 * 90


class ExplanationOutput(serializers.Serializer[Any]):
    """A decision in words."""

    language = serializers.ChoiceField(choices=["en", "ko"])
    kind = serializers.CharField()
    sentence = serializers.CharField()
    points = serializers.ListField(child=serializers.CharField())


class DecisionRow(serializers.ModelSerializer[Decision]):
    """A decision in a list; its record is given by the detail."""

    class Meta:
        model = Decision
        fields = read_only_fields = [
            "id", "decision_id", "router", "at", "pool", "document_version", "policy",
            "decided_by", "tenant", "project", "key", "model", "attempt", "destination", "prefill",
            "prompt_tokens", "hit_tokens", "uncached_tokens", "cached_tokens",
            "predicted_ttft_seconds", "real_ttft_seconds", "margin_seconds", "runner_up", "outcome",
            "status", "refusal_code",
        ]  # fmt: skip

    def to_representation(self, instance: Decision) -> dict[str, Any]:
        """People of a tenant see nothing of the fleet behind their requests."""
        told: dict[str, Any] = super().to_representation(instance)
        if self.context["request"].user.tenant_id is not None:
            told |= {"margin_seconds": None, "runner_up": ""}
        return told


class DecisionOutput(DecisionRow):
    """A decision with its record and the reason in words."""

    record = serializers.SerializerMethodField()
    explanation = serializers.SerializerMethodField()

    class Meta(DecisionRow.Meta):
        fields = read_only_fields = [*DecisionRow.Meta.fields, "record", "explanation"]

    @extend_schema_field(OBJECT)
    def get_record(self, row: Decision) -> dict[str, Any]:
        """What the router wrote, as far as the caller may see it."""
        return selectors.record_for_viewer(row, self.context["request"].user)

    @extend_schema_field(ExplanationOutput)
    def get_explanation(self, row: Decision) -> dict[str, Any] | None:
        """Why; null for people of a tenant where it names other endpoints."""
        request = self.context["request"]
        told = services.explain_row(row, language=request.query_params.get("language", "en"))
        if request.user.tenant_id is not None and row.outcome != Decision.Outcome.REFUSED:
            return None
        return explanation_of(told)


def explanation_of(told: Any) -> dict[str, Any]:
    """An explanation as JSON."""
    return {
        "language": told.language,
        "kind": told.kind,
        "sentence": told.sentence,
        "points": list(told.points),
    }


class DecisionFilter(filters.FilterSet):
    pool = filters.CharFilter()
    tenant = filters.CharFilter()
    project = filters.CharFilter()
    model = filters.CharFilter()
    policy = filters.CharFilter()
    router = filters.CharFilter()
    destination = filters.CharFilter()
    decision_id = filters.CharFilter()
    outcome = filters.ChoiceFilter(choices=Decision.Outcome.choices)
    refusal_code = filters.CharFilter()
    at__gte = filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")
    at__lt = filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt")

    class Meta:
        model = Decision
        fields: list[str] = []


class DecisionViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Decision]
):
    """Sampled decisions, latest first; no prompt text is in them."""

    request: ApiRequest
    queryset = Decision.objects.none()
    serializer_class = DecisionRow
    filterset_class = DecisionFilter
    lookup_slug = "decision_id"
    ordering = ("-at",)
    query_parameters = ("language",)
    sort_fields = {
        "at": "at",
        "margin_seconds": "margin_seconds",
        "predicted_ttft_seconds": "predicted_ttft_seconds",
        "real_ttft_seconds": "real_ttft_seconds",
    }

    def get_queryset(self) -> Any:
        """What the caller may see; lists leave the records where they are."""
        rows = selectors.decisions_for_viewer(self.request.user)
        return rows.defer("record") if self.action == "list" else rows

    def get_serializer_class(self) -> Any:
        """The detail has the record."""
        return DecisionRow if self.action == "list" else DecisionOutput


class ShadowOutput(serializers.Serializer[Any]):
    """One shadow policy over the period; regret is negative when its choices are cheaper."""

    policy = serializers.CharField()
    live = serializers.CharField(allow_blank=True)
    asked = serializers.IntegerField()
    agreement = serializers.FloatField(allow_null=True)
    regret_seconds = serializers.FloatField(allow_null=True)
    ttft_seconds = serializers.FloatField(allow_null=True)
    live_ttft_seconds = serializers.FloatField(allow_null=True)
    until = serializers.DateTimeField(allow_null=True)


class ShadowListOutput(serializers.Serializer[Any]):
    """Shadow policies, the one with the least regret first."""

    items = ShadowOutput(many=True)
    hours = serializers.IntegerField()
    as_of = serializers.DateTimeField()


class ShadowViewSet(viewsets.GenericViewSet[ShadowHour]):
    """How other policies would have done on live traffic; regret is modelled."""

    request: ApiRequest
    queryset = ShadowHour.objects.none()
    serializer_class = ShadowOutput
    pagination_class = None
    query_parameters = ("hours", "pool")

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.shadow_hours_for_viewer(self.request.user)

    @extend_schema(
        operation_id="routing_shadow_list",
        responses=ShadowListOutput,
        parameters=[
            OpenApiParameter("hours", int, description=f"1 to {MOST_HOURS}; 24 by default."),
            OpenApiParameter("pool", str),
        ],
    )
    def list(self, request: ApiRequest) -> Response:
        """Sums over the last hours."""
        hours = _hours(request.query_params.get("hours", "24"))
        pool = request.query_params.get("pool", "")
        rows = selectors.shadow_figures(request.user, pool=pool, hours=hours)
        items = [asdict(row) for row in rows]
        return Response({"items": items, "hours": hours, "as_of": timezone.now()})


def _hours(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= MOST_HOURS:
        return int(text)
    raise InvalidParameterError(parameter="hours", value=text[:50], allowed=f"1 to {MOST_HOURS}")


class PairOutput(serializers.Serializer[Any]):
    """Whether two endpoints can hand over KV."""

    pool = serializers.CharField()
    prefill = serializers.CharField()
    decode = serializers.CharField()
    verdict = serializers.ChoiceField(
        choices=["compatible", "compatible_with", "incompatible", "unknown"]
    )
    reason = serializers.CharField()
    staging = serializers.CharField(allow_null=True)
    missing = serializers.ListField(child=serializers.CharField())
    seconds_per_1000_tokens = serializers.FloatField(allow_null=True)
    crosses_site = serializers.BooleanField()
    crosses_jurisdiction = serializers.BooleanField()


class PairListOutput(serializers.Serializer[Any]):
    """Pairs of the ready endpoints."""

    items = PairOutput(many=True)
    as_of = serializers.DateTimeField()


class PairViewSet(viewsets.GenericViewSet[Endpoint]):
    """KV contract verdict, cost and borders per prefill and decode endpoint."""

    request: ApiRequest
    queryset = Endpoint.objects.none()
    serializer_class = PairOutput
    pagination_class = None
    query_parameters = ("pool",)

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return Endpoint.objects.none()

    @extend_schema(
        operation_id="routing_pairs_list",
        responses=PairListOutput,
        parameters=[OpenApiParameter("pool", str)],
    )
    def list(self, request: ApiRequest) -> Response:
        """Pairs of the ready endpoints, by pool."""
        pool = request.query_params.get("pool", "")
        items = [asdict(row) for row in selectors.pairs_for_viewer(request.user, pool=pool)]
        return Response({"items": items, "as_of": timezone.now()})


class RouterReadingOutput(serializers.ModelSerializer[RouterReading]):
    """How far one router has been read."""

    class Meta:
        model = RouterReading
        fields = read_only_fields = [
            "id", "router", "last_number", "read_at", "last_error", "left_out", "missed",
        ]  # fmt: skip


class RouterReadingViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[RouterReading]
):
    """How far each router's decisions have been read."""

    request: ApiRequest
    queryset = RouterReading.objects.none()
    serializer_class = RouterReadingOutput
    lookup_slug = "router"

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.readings_for_viewer(self.request.user)
