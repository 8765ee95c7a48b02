"""Runs of scenarios in the API."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.reads import LINKS, OBJECT
from controlplane.common.serializers import OptionalReasonInput
from controlplane.operations.api import ProgressOutput
from controlplane.operations.models import Operation
from controlplane.planning import selectors, services
from controlplane.planning.api.shared import Reads
from controlplane.planning.models import ScenarioRun


class ScenarioRunOutput(serializers.ModelSerializer[ScenarioRun]):
    """A run; `result` and `error_band` are null until it has succeeded, and whole then."""

    scenario = serializers.CharField(source="scenario.name")
    state = serializers.ChoiceField(choices=Operation.State.choices)
    progress = ProgressOutput(source="operation")
    created_by = serializers.CharField(source="created_by.username")
    result = serializers.SerializerMethodField()
    error_band = serializers.SerializerMethodField()
    error = serializers.JSONField(source="operation.error", allow_null=True)
    method = serializers.SerializerMethodField()
    links = serializers.SerializerMethodField()

    class Meta:
        model = ScenarioRun
        fields = read_only_fields = [
            "id", "scenario", "state", "progress", "seed", "engine_model", "method", "error_band",
            "result", "error", "created_by", "created_at", "finished_at", "links",
        ]  # fmt: skip

    @extend_schema_field({**OBJECT, "nullable": True})
    def get_result(self, run: ScenarioRun) -> dict[str, Any] | None:
        """Advice per pool with alternatives; figures are simulated, bounds modelled."""
        result: dict[str, Any] | None = run.result
        return result

    @extend_schema_field({**OBJECT, "nullable": True})
    def get_error_band(self, run: ScenarioRun) -> dict[str, Any] | None:
        """Median relative errors of the simulator, with their source."""
        band: dict[str, Any] | None = run.error_band
        return band

    @extend_schema_field({"type": "string", "enum": ["simulated"]})
    def get_method(self, run: ScenarioRun) -> str:
        """How figures came to be."""
        return "simulated"

    @extend_schema_field(LINKS)
    def get_links(self, run: ScenarioRun) -> dict[str, str]:
        """Addresses of the run and of what belongs to it."""
        own = f"/api/v1/scenario-runs/{run.pk}"
        return {
            "self": own,
            "cancel": f"{own}/cancel",
            "scenario": f"/api/v1/scenarios/{run.scenario_id}",
            "operation": f"/api/v1/operations/{run.operation_id}",
            "advice": f"/api/v1/advice?run={run.pk}",
        }


class ScenarioRunFilter(filters.FilterSet):
    scenario = filters.UUIDFilter(field_name="scenario")
    state = filters.ChoiceFilter(field_name="operation__state", choices=Operation.State.choices)

    class Meta:
        model = ScenarioRun
        fields: list[str] = []


class ScenarioRunViewSet(Reads):
    """Runs of the planner, latest first."""

    queryset = ScenarioRun.objects.none()
    serializer_class = ScenarioRunOutput
    filterset_class = ScenarioRunFilter
    computations = frozenset({"cancel"})

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.runs_for_viewer(self.request.user)

    @extend_schema(request=OptionalReasonInput, responses=ScenarioRunOutput)
    @action(detail=True, methods=["post"])
    def cancel(self, request: ApiRequest, pk: str) -> Response:
        """Ask for the end; a running run ends within seconds and keeps nothing."""
        run, body = self.get_object(), self.read(OptionalReasonInput)
        return self.answer(services.cancel_run(run_id=run.pk, actor=request.user, **body))
