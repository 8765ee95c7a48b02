"""Scenarios in the API: stated in full, or a pool on the fleet as it is."""

from typing import Any

from django.utils.translation import gettext as _
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.reads import LINKS, OBJECT
from controlplane.common.serializers import StrictSerializer, VisibleRow
from controlplane.planning import selectors, services
from controlplane.planning.api.runs import ScenarioRunOutput
from controlplane.planning.api.shared import Reads
from controlplane.planning.models import Scenario
from controlplane.serving import selectors as serving


class ScenarioOutput(serializers.ModelSerializer[Scenario]):
    """A scenario with the state of its latest run; null without one."""

    created_by = serializers.CharField(source="created_by.username")
    problem = serializers.SerializerMethodField()
    last_run = serializers.UUIDField(allow_null=True)
    last_run_state = serializers.CharField(allow_null=True)
    last_run_at = serializers.DateTimeField(allow_null=True)
    links = serializers.SerializerMethodField()

    class Meta:
        model = Scenario
        fields = read_only_fields = [
            "id", "name", "note", "origin", "problem", "simulated", "created_by", "last_run",
            "last_run_state", "last_run_at", "created_at", "updated_at", "links",
        ]  # fmt: skip

    @extend_schema_field(OBJECT)
    def get_problem(self, row: Scenario) -> dict[str, Any]:
        """Groups of accelerators, demands with traffic and targets, currency."""
        problem: dict[str, Any] = row.problem
        return problem

    @extend_schema_field(LINKS)
    def get_links(self, row: Scenario) -> dict[str, str]:
        """Addresses of the scenario and of what belongs to it."""
        own = f"/api/v1/scenarios/{row.pk}"
        return {
            "self": own, "run": f"{own}/run", "runs": f"/api/v1/scenario-runs?scenario={row.pk}",
        }  # fmt: skip


class TrafficInput(StrictSerializer):
    """The shape of a load; lengths are means in tokens."""

    rate_qps = serializers.FloatField(min_value=0.000001, max_value=100_000)
    prompt_tokens = serializers.IntegerField(min_value=1, max_value=2_000_000)
    output_tokens = serializers.IntegerField(min_value=1, max_value=1_000_000)
    shared_tokens = serializers.IntegerField(required=False, min_value=0, max_value=2_000_000)
    groups = serializers.IntegerField(required=False, min_value=0, max_value=100_000)


class TargetInput(StrictSerializer):
    """What an answer must keep to be good."""

    ttft_seconds = serializers.FloatField(required=False, min_value=0.001, max_value=3600)
    tpot_seconds = serializers.FloatField(required=False, min_value=0.0001, max_value=60)


class ScenarioInput(StrictSerializer):
    """A `problem` in full, or a `pool` with its `traffic` on the fleet as it is."""

    name = serializers.CharField(max_length=120)
    note = serializers.CharField(max_length=300, required=False, default="", allow_blank=True)
    problem = serializers.DictField(required=False, allow_null=True, default=None)
    pool = VisibleRow(serving.pools_for_viewer, required=False)
    traffic = TrafficInput(required=False, allow_null=True, default=None)
    target = TargetInput(required=False, allow_null=True, default=None)
    include_idle = serializers.BooleanField(required=False, default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """One of the two."""
        if (attrs["problem"] is None) == ("pool" not in attrs):
            message = _("Give a problem in full, or a pool of the fleet, and not both.")
            raise serializers.ValidationError({"problem": [message]})
        if "pool" in attrs and attrs["traffic"] is None:
            message = _("A pool needs its traffic: rate_qps, prompt_tokens and output_tokens.")
            raise serializers.ValidationError({"traffic": [message]})
        return attrs


class ScenarioChangeInput(StrictSerializer):
    """What is to be different; another problem makes the scenario a stated one."""

    name = serializers.CharField(max_length=120, required=False)
    note = serializers.CharField(max_length=300, required=False, allow_blank=True)
    problem = serializers.DictField(required=False)


class RunInput(StrictSerializer):
    """Equal problems and seeds give equal results."""

    seed = serializers.IntegerField(required=False, default=1, min_value=0, max_value=2**31 - 1)


class ScenarioFilter(filters.FilterSet):
    name = filters.CharFilter(lookup_expr="icontains")
    origin = filters.ChoiceFilter(choices=Scenario.Origin.choices)

    class Meta:
        model = Scenario
        fields: list[str] = []


class ScenarioViewSet(Reads):
    """Fleets with traffic and targets to plan for."""

    queryset = Scenario.objects.none()
    serializer_class = ScenarioOutput
    filterset_class = ScenarioFilter
    lookup_slug = "name"
    sort_fields = {"created_at": "created_at", "name": "name"}
    heavy_actions = frozenset({"run"})

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.scenarios_for_viewer(self.request.user)

    @extend_schema(request=ScenarioInput, responses={201: ScenarioOutput})
    def create(self, request: ApiRequest) -> Response:
        """Store a scenario; nothing is computed yet."""
        body = self.read(ScenarioInput)
        stated = {"name": body["name"], "note": body["note"], "actor": request.user}
        if body["problem"] is not None:
            row = services.create_scenario(problem=body["problem"], **stated)
        else:
            question = services.FleetQuestion(
                pool_id=body["pool"], traffic=body["traffic"], target=body["target"],
                include_idle=body["include_idle"],
            )  # fmt: skip
            row = services.create_from_fleet(question=question, **stated)
        return self.answer(row, created=True)

    @extend_schema(request=ScenarioChangeInput, responses=ScenarioOutput)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Change name, note or problem; runs keep what they ran."""
        row, body = self.get_object(), self.read(ScenarioChangeInput)
        row = services.change_scenario(scenario_id=row.pk, actor=request.user, **body)
        return self.answer(row)

    @extend_schema(responses={204: None})
    def destroy(self, request: ApiRequest, pk: str) -> Response:
        """Retire the scenario; its runs and advice stay."""
        services.retire_scenario(scenario_id=self.get_object().pk, actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=RunInput, responses={202: ScenarioRunOutput})
    @action(detail=True, methods=["post"])
    def run(self, request: ApiRequest, pk: str) -> Response:
        """Start a run; the link `operation` shows how far it is."""
        row, body = self.get_object(), self.read(RunInput)
        run = services.run_scenario(scenario_id=row.pk, actor=request.user, **body)
        fresh = selectors.runs_for_viewer(request.user).get(pk=run.pk)
        return Response(ScenarioRunOutput(fresh).data, status=status.HTTP_202_ACCEPTED)
