"""The role ledger, deployments and endpoints."""

from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.common.errors import InvalidParameterError
from controlplane.common.http import ApiRequest
from controlplane.common.reads import OBJECT, Reads
from controlplane.serving import selectors, services
from controlplane.serving.api.shared import CONDITIONS
from controlplane.serving.errors import EngineOutputUnavailableError
from controlplane.serving.hints import hint_of
from controlplane.serving.models import Endpoint, Role, RoleAssignment, Workload
from controlplane.serving.targets.base import TargetRefusedError, TargetUnavailableError


class RoleAssignmentOutput(serializers.ModelSerializer[RoleAssignment]):
    """A period of the role ledger; `valid_to` null is in force."""

    pool = serializers.CharField(source="pool.slug")
    node = serializers.CharField(source="node.hostname")
    accelerators = serializers.SerializerMethodField()
    change_plan = serializers.CharField(source="change_plan.number", allow_null=True, default=None)

    class Meta:
        model = RoleAssignment
        fields = read_only_fields = [
            "id", "pool", "node", "node_id", "role", "accelerators", "valid_from", "valid_to",
            "change_plan", "reason", "simulated", "created_at",
        ]  # fmt: skip

    @extend_schema_field({"type": "array", "items": {"type": "string", "format": "uuid"}})
    def get_accelerators(self, row: RoleAssignment) -> list[str]:
        """Ids of the accelerators, in the order of their slots."""
        accelerators = sorted(row.accelerators.all(), key=lambda device: device.slot)
        return [str(device.pk) for device in accelerators]


class RoleAssignmentFilter(filters.FilterSet):
    pool = filters.CharFilter(field_name="pool__slug")
    node = filters.UUIDFilter(field_name="node")
    role = filters.ChoiceFilter(choices=Role.choices)

    class Meta:
        model = RoleAssignment
        fields: list[str] = []


class RoleAssignmentViewSet(Reads):
    """Who was what, when; changed only through change plans."""

    queryset = RoleAssignment.objects.none()
    serializer_class = RoleAssignmentOutput
    filterset_class = RoleAssignmentFilter
    query_parameters = ("at",)
    sort_fields = {"valid_from": "valid_from"}

    def get_queryset(self) -> Any:
        """What the caller may see; with `at`, what was in force at that moment."""
        text = self.request.query_params.get("at")
        moment = None if text is None else _moment(text)
        return selectors.assignments_for_viewer(self.request.user, at=moment)

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "at", OpenApiTypes.DATETIME,
                description="A moment with its offset from UTC, or `now`: the ledger as it was.",
            )
        ]
    )  # fmt: skip
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The ledger, latest first."""
        return super().list(request, *args, **kwargs)


def _moment(text: str) -> datetime:
    if text == "now":
        return timezone.now()
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidParameterError(
            parameter="at", value=text, allowed="now, or a time such as 2026-01-31T12:00:00Z"
        )
    return moment


class DeploymentOutput(serializers.ModelSerializer[Workload]):
    """The engine of one accelerator: wanted and seen."""

    pool = serializers.CharField(source="pool.slug")
    node = serializers.CharField(source="node.hostname")
    spec = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField()

    class Meta:
        model = Workload
        fields = read_only_fields = [
            "id", "name", "pool", "node", "node_id", "accelerator_id", "target", "generation",
            "spec", "status", "created_at", "updated_at",
        ]  # fmt: skip

    @extend_schema_field(OBJECT)
    def get_spec(self, row: Workload) -> dict[str, Any]:
        """Role and command line."""
        return {
            "desired_state": row.desired_state,
            "role": row.role or None,
            "engine": row.desired.get("engine"),
            "argv": row.desired.get("argv", []),
            "kv_contract": row.desired.get("kv_contract", {}),
        }

    @extend_schema_field(
        {"type": "object", "properties": {"conditions": CONDITIONS}, "additionalProperties": {}}
    )
    def get_status(self, row: Workload) -> dict[str, Any]:
        """What was seen last, and when."""
        seen = row.observed
        return {
            "state": seen.get("state"),
            "pid": seen.get("pid"),
            "instance": seen.get("instance"),
            "url": seen.get("url"),
            "observed_generation": row.observed_generation,
            "observed_at": row.observed_at,
            "conditions": [{**one, "hint": hint_of(one)} for one in row.conditions],
        }


class LogOutput(serializers.Serializer[Any]):
    """Last bytes of an engine's output."""

    name = serializers.CharField()
    text = serializers.CharField()


class DeploymentFilter(filters.FilterSet):
    pool = filters.CharFilter(field_name="pool__slug")
    node = filters.UUIDFilter(field_name="node")
    role = filters.ChoiceFilter(choices=Role.choices)

    class Meta:
        model = Workload
        fields: list[str] = []


class DeploymentViewSet(Reads):
    """Engines on their targets."""

    queryset = Workload.objects.none()
    serializer_class = DeploymentOutput
    filterset_class = DeploymentFilter
    lookup_slug = "name"
    sort_fields = {"name": "name"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.workloads_for_viewer(self.request.user)

    @extend_schema(responses=LogOutput, filters=False)
    @action(detail=True, methods=["get"])
    def logs(self, request: ApiRequest, pk: str) -> Response:
        """The end of the engine's output."""
        row = self.get_object()
        try:
            text = services.workload_logs(workload_id=row.pk, actor=request.user)
        except (TargetUnavailableError, TargetRefusedError) as error:
            raise EngineOutputUnavailableError(name=row.name, detail=str(error)) from error
        return Response(LogOutput({"name": row.name, "text": text}).data)


class EndpointOutput(serializers.ModelSerializer[Endpoint]):
    """An address in one life of its process."""

    name = serializers.CharField(source="workload.name")
    pool = serializers.CharField(source="pool.slug")
    node = serializers.CharField(source="node.hostname")

    class Meta:
        model = Endpoint
        fields = read_only_fields = [
            "id", "name", "pool", "node", "node_id", "url", "instance", "pid", "engine", "role",
            "state", "kv_contract", "block_size_tokens", "kv_capacity_tokens", "max_model_len",
            "observed_at", "ready_at", "gone_at", "gone_reason", "created_at", "updated_at",
        ]  # fmt: skip


class EndpointFilter(filters.FilterSet):
    pool = filters.CharFilter(field_name="pool__slug")
    node = filters.UUIDFilter(field_name="node")
    role = filters.ChoiceFilter(choices=Role.choices)
    state = filters.ChoiceFilter(choices=Endpoint.State.choices)

    class Meta:
        model = Endpoint
        fields: list[str] = []


class EndpointViewSet(Reads):
    """Endpoints, also those that are gone."""

    queryset = Endpoint.objects.none()
    serializer_class = EndpointOutput
    filterset_class = EndpointFilter
    sort_fields = {"created_at": "created_at", "name": "workload__name"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.endpoints_for_viewer(self.request.user)
