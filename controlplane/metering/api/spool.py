"""What was taken from the spools of routers, what was refused, and how people go on then."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.serializers import ReasonInput
from controlplane.metering import selectors, services
from controlplane.metering.api.reads import Reads
from controlplane.metering.models import RouterProgress, SegmentRefusal, UsageSegment


class UsageSegmentOutput(serializers.ModelSerializer[UsageSegment]):
    """A run of events that was taken."""

    class Meta:
        model = UsageSegment
        read_only_fields = fields = [
            "id", "router", "first_sequence", "last_sequence", "sha256", "events", "ingested_at",
        ]  # fmt: skip


class UsageSegmentFilter(filters.FilterSet):
    router = filters.CharFilter()

    class Meta:
        model = UsageSegment
        fields: list[str] = []


class UsageSegmentViewSet(Reads):
    """What was taken from routers."""

    queryset = UsageSegment.objects.none()
    serializer_class = UsageSegmentOutput
    filterset_class = UsageSegmentFilter
    ordering = ("router", "-first_sequence")
    sort_fields = {"ingested_at": "ingested_at"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.segments_for_viewer(self.request.user)


class UsageRouterOutput(serializers.ModelSerializer[RouterProgress]):
    """How far the spool of a router is read, and what hinders it."""

    class Meta:
        model = RouterProgress
        read_only_fields = fields = [
            "id", "router", "last_sequence", "missing_events", "complete_until", "pulled_at",
            "last_error", "lost_at", "lost_reason", "updated_at",
        ]  # fmt: skip


class UsageRouterViewSet(Reads):
    """Routers whose usage is read."""

    queryset = RouterProgress.objects.none()
    serializer_class = UsageRouterOutput
    lookup_slug = "router"
    ordering = ("router",)
    sort_fields = {"router": "router", "pulled_at": "pulled_at"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.routers_for_viewer(self.request.user)

    @extend_schema(request=ReasonInput, responses=UsageRouterOutput)
    @action(detail=True, methods=["post"], url_path="declare-lost")
    def declare_lost(self, request: ApiRequest, pk: str) -> Response:
        """Go on without what the router has not delivered; until it answers again."""
        row, body = self.get_object(), ReasonInput(data=request.data)
        body.is_valid(raise_exception=True)
        row = services.declare_router_lost(
            router=row.router, actor=request.user, **body.validated_data
        )
        return Response(UsageRouterOutput(row).data)


class SegmentRefusalOutput(serializers.ModelSerializer[SegmentRefusal]):
    """A run of events that was not taken, and why."""

    class Meta:
        model = SegmentRefusal
        read_only_fields = fields = [
            "id", "router", "first_sequence", "last_sequence", "sha256", "reason", "detail",
            "seen_at", "times_seen", "created_at",
        ]  # fmt: skip


class SegmentRefusalFilter(filters.FilterSet):
    router = filters.CharFilter()
    reason = filters.ChoiceFilter(choices=SegmentRefusal.Reason.choices)

    class Meta:
        model = SegmentRefusal
        fields: list[str] = []


class SegmentRefusalViewSet(Reads):
    """What was refused; each holds up the usage of its router until somebody decides."""

    queryset = SegmentRefusal.objects.none()
    serializer_class = SegmentRefusalOutput
    filterset_class = SegmentRefusalFilter
    ordering = ("-seen_at",)
    sort_fields = {"seen_at": "seen_at"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.refusals_for_viewer(self.request.user)

    @extend_schema(request=ReasonInput, responses=UsageRouterOutput)
    @action(detail=True, methods=["post"])
    def skip(self, request: ApiRequest, pk: str) -> Response:
        """Go on behind the segment: its events count as missing; answers with the router."""
        refusal, body = self.get_object(), ReasonInput(data=request.data)
        body.is_valid(raise_exception=True)
        row = services.skip_segment(
            refusal_id=refusal.pk, actor=request.user, **body.validated_data
        )
        return Response(UsageRouterOutput(row).data)
