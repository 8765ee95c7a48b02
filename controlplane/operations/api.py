"""Operations in the API: watch, cancel, retry."""

import time
from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.common.errors import InvalidParameterError
from controlplane.common.http import ApiRequest
from controlplane.common.serializers import OptionalReasonInput
from controlplane.operations import selectors, services
from controlplane.operations.models import Operation, OperationStep

LONGEST_WAIT_SECONDS = 20
LOOK_EVERY_SECONDS = 0.25


class StepOutput(serializers.ModelSerializer[OperationStep]):
    class Meta:
        model = OperationStep
        fields = ["name", "state", "attempt", "started_at", "finished_at", "detail"]
        read_only_fields = fields


class ProgressOutput(serializers.Serializer[Operation]):
    done = serializers.IntegerField(source="progress_done")
    total = serializers.IntegerField(source="progress_total")
    unit = serializers.CharField(source="progress_unit")


class SubjectOutput(serializers.Serializer[Operation]):
    type = serializers.CharField(source="subject_type")
    id = serializers.CharField(source="subject_id")
    display = serializers.CharField(source="subject_repr")


class OperationOutput(serializers.ModelSerializer[Operation]):
    subject = SubjectOutput(source="*")
    progress = ProgressOutput(source="*")
    steps = StepOutput(many=True)
    created_by = serializers.CharField(source="created_by.username", allow_null=True, default=None)
    result = serializers.JSONField(allow_null=True)
    error = serializers.JSONField(allow_null=True)
    links = serializers.SerializerMethodField()

    class Meta:
        model = Operation
        fields = [
            "id", "kind", "state", "subject", "progress", "steps", "result", "error", "created_by",
            "request_id", "attempt", "started_at", "finished_at", "created_at", "updated_at",
            "links",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
    def get_links(self, operation: Operation) -> dict[str, str]:
        """Addresses of the row and of what can be done with it."""
        own = f"/api/v1/operations/{operation.pk}"
        return {"self": own, "cancel": f"{own}/cancel", "retry": f"{own}/retry"}


class OperationFilter(filters.FilterSet):
    state = filters.ChoiceFilter(choices=Operation.State.choices)
    kind = filters.CharFilter()
    subject = filters.CharFilter(field_name="subject_id")

    class Meta:
        model = Operation
        fields: list[str] = []


class OperationViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Operation]
):
    """Work longer than about a second, as rows to watch."""

    request: ApiRequest
    queryset = Operation.objects.none()
    serializer_class = OperationOutput
    filterset_class = OperationFilter
    query_parameters = ("wait",)
    computations = frozenset({"cancel", "retry"})
    sort_fields = {"created_at": "created_at", "kind": "kind", "state": "state"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.operations_for_viewer(self.request.user)

    @extend_schema(
        parameters=[
            OpenApiParameter(
                "wait", OpenApiTypes.INT,
                description=f"Seconds, at most {LONGEST_WAIT_SECONDS}: hold the answer until the "
                "state changes.",
            )
        ]
    )  # fmt: skip
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One operation; with `wait` the answer is held until its state changes."""
        operation = self.get_object()
        seconds = _wait_seconds(request)
        until = time.monotonic() + seconds
        while seconds and not operation.has_ended and time.monotonic() < until:
            time.sleep(LOOK_EVERY_SECONDS)
            state = Operation.objects.values_list("state", flat=True).get(pk=operation.pk)
            if state != operation.state:
                operation = self.get_object()
                break
        return Response(OperationOutput(operation).data)

    @extend_schema(request=OptionalReasonInput, responses=OperationOutput)
    @action(detail=True, methods=["post"])
    def cancel(self, request: ApiRequest, pk: str) -> Response:
        """Ask for the end; a running operation ends between two steps."""
        operation, body = self.get_object(), OptionalReasonInput(data=request.data)
        body.is_valid(raise_exception=True)
        operation = services.request_cancel(
            operation_id=operation.pk, actor=request.user, **body.validated_data
        )
        return Response(OperationOutput(operation).data)

    @extend_schema(request=OptionalReasonInput, responses=OperationOutput)
    @action(detail=True, methods=["post"])
    def retry(self, request: ApiRequest, pk: str) -> Response:
        """Go on at the first step that has not succeeded."""
        operation, body = self.get_object(), OptionalReasonInput(data=request.data)
        body.is_valid(raise_exception=True)
        operation = services.retry(
            operation_id=operation.pk, actor=request.user, **body.validated_data
        )
        return Response(OperationOutput(operation).data)


def _wait_seconds(request: Request) -> int:
    text = request.query_params.get("wait", "0")
    if len(text) > 2 or not text.isdecimal() or int(text) > LONGEST_WAIT_SECONDS:
        raise InvalidParameterError(
            parameter="wait", value=text, allowed=f"0 … {LONGEST_WAIT_SECONDS}"
        )
    return int(text)
