"""Change plans and their waves."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.reads import LINKS, OBJECT, Reads
from controlplane.common.serializers import OptionalReasonInput, ReasonInput, StrictSerializer
from controlplane.serving import selectors, services
from controlplane.serving.models import Approval, ChangePlan, Pool, Role, Wave
from controlplane.serving.services import PlanInput


class ApprovalOutput(serializers.ModelSerializer[Approval]):
    """Who consented, when."""

    approver = serializers.CharField(source="approver.username")

    class Meta:
        model = Approval
        fields = read_only_fields = ["approver", "comment", "created_at"]


class CheckOutput(serializers.Serializer[Any]):
    """What one check found."""

    name = serializers.CharField()
    verdict = serializers.ChoiceField(choices=["pass", "warn", "block"])
    sentence = serializers.CharField()
    numbers = serializers.DictField()


class WaveOutput(serializers.ModelSerializer[Wave]):
    """A wave and how far it is; `step` is the one it is at."""

    plan = serializers.CharField(source="plan.number")
    items = serializers.JSONField()
    detail = serializers.JSONField()

    class Meta:
        model = Wave
        fields = read_only_fields = [
            "id", "plan", "position", "state", "step", "backwards", "items", "detail",
            "started_at", "step_started_at", "ended_at", "updated_at",
        ]  # fmt: skip


class ChangePlanOutput(serializers.ModelSerializer[ChangePlan]):
    """A plan: what was asked for under `spec`, where it is under `status`."""

    number = serializers.CharField()
    author = serializers.CharField(source="author.username")
    spec = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField()
    diff = serializers.JSONField()
    checks = CheckOutput(many=True)
    effects = serializers.SerializerMethodField()
    approvals = ApprovalOutput(many=True)
    links = serializers.SerializerMethodField()

    class Meta:
        model = ChangePlan
        fields = read_only_fields = [
            "id", "number", "state", "author", "reason", "spec", "status", "diff", "checks",
            "effects", "approvals", "fingerprint", "expires_at", "simulated", "created_at",
            "updated_at", "links",
        ]  # fmt: skip

    @extend_schema_field(OBJECT)
    def get_spec(self, plan: ChangePlan) -> dict[str, Any]:
        """What was asked for."""
        return {
            "pool": plan.pool.slug,
            "role": plan.role or None,
            "accelerators_per_wave": plan.accelerators_per_wave,
            "floor_share": plan.floor_share,
            "soak_seconds": plan.soak_seconds,
            "drain_seconds": plan.drain_seconds,
            "ready_seconds": plan.ready_seconds,
            "prefetch_seconds": plan.prefetch_seconds,
            "guards": plan.guards,
        }

    @extend_schema_field(OBJECT)
    def get_status(self, plan: ChangePlan) -> dict[str, Any]:
        """Where the plan is."""
        return {
            "state": plan.state,
            "rolling_back": plan.rolling_back,
            "cancelling": plan.cancelling,
            "paused_at": plan.paused_at,
            "proposed_at": plan.proposed_at,
            "applied_at": plan.applied_at,
            "ended_at": plan.ended_at,
            "outcome": plan.outcome,
            "waves": [
                {"position": wave.position, "state": wave.state, "step": wave.step}
                for wave in plan.waves.all()
            ],
        }

    @extend_schema_field(OBJECT)
    def get_effects(self, plan: ChangePlan) -> dict[str, Any]:
        """Effects without the hashes that only the server compares."""
        return {name: value for name, value in plan.effects.items() if name != "state_parts"}

    @extend_schema_field(LINKS)
    def get_links(self, plan: ChangePlan) -> dict[str, str]:
        """Addresses of the plan and of what belongs to it."""
        links = {
            "self": f"/api/v1/change-plans/{plan.pk}",
            "waves": f"/api/v1/change-plans/{plan.pk}/waves",
            "checks": f"/api/v1/change-plans/{plan.pk}/checks",
        }
        if plan.operation_id is not None:
            links["operation"] = f"/api/v1/operations/{plan.operation_id}"
        return links


class ChangePlanInput(ReasonInput):
    """A change of roles to be computed; without a role the accelerators are released."""

    pool = serializers.SlugRelatedField(slug_field="slug", queryset=Pool.objects.all())
    role = serializers.ChoiceField(choices=Role.choices, required=False, allow_null=True)
    nodes = serializers.ListField(child=serializers.UUIDField(), required=False, max_length=500)
    accelerators = serializers.ListField(
        child=serializers.UUIDField(), required=False, max_length=5000
    )
    accelerators_per_wave = serializers.IntegerField(required=False, min_value=1, max_value=5000)
    floor_share = serializers.FloatField(required=False, min_value=0, max_value=1)
    soak_seconds = serializers.FloatField(required=False, min_value=0, max_value=86_400)
    drain_seconds = serializers.FloatField(required=False, min_value=0, max_value=86_400)
    ready_seconds = serializers.FloatField(required=False, min_value=1, max_value=86_400)
    prefetch_seconds = serializers.FloatField(required=False, min_value=0, max_value=86_400)
    guards = serializers.DictField(child=serializers.FloatField(), required=False)

    def wish(self) -> PlanInput:
        """The validated body as the service takes it."""
        values = dict(self.validated_data)
        return PlanInput(
            pool_id=values.pop("pool").pk,
            role=values.pop("role", None) or "",
            node_ids=values.pop("nodes", ()),
            accelerator_ids=values.pop("accelerators", ()),
            **values,
        )


class CommentInput(StrictSerializer):
    """A word to the author."""

    comment = serializers.CharField(max_length=300, required=False, allow_blank=True)


class ChangePlanFilter(filters.FilterSet):
    pool = filters.CharFilter(field_name="pool__slug")
    state = filters.ChoiceFilter(choices=ChangePlan.State.choices)

    class Meta:
        model = ChangePlan
        fields: list[str] = []


class ChangePlanViewSet(Reads):
    """Changes of roles: computed, approved by somebody else, applied in waves."""

    queryset = ChangePlan.objects.none()
    serializer_class = ChangePlanOutput
    filterset_class = ChangePlanFilter
    sort_fields = {"number": "serial", "created_at": "created_at"}
    dry_runs = frozenset({"create"})

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.plans_for_viewer(self.request.user)

    @extend_schema(request=ChangePlanInput, responses={201: ChangePlanOutput})
    def create(self, request: ApiRequest) -> Response:
        """Compute a plan and store it as a draft; nothing else changes."""
        body = ChangePlanInput(data=request.data)
        body.is_valid(raise_exception=True)
        return self.answer(services.draft_plan(body.wish(), actor=request.user), created=True)

    @extend_schema(responses=WaveOutput(many=True), filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def waves(self, request: ApiRequest, pk: str) -> Response:
        """The plan's waves in their order."""
        rows = selectors.waves_for_viewer(request.user).filter(plan=self.get_object())
        return Response(WaveOutput(rows, many=True).data)

    @extend_schema(responses=CheckOutput(many=True), filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def checks(self, request: ApiRequest, pk: str) -> Response:
        """What the checks found when the plan was made, blocks first."""
        return Response(CheckOutput(self.get_object().checks, many=True).data)

    @extend_schema(request=None, responses=ChangePlanOutput)
    @action(detail=True, methods=["post"])
    def propose(self, request: ApiRequest, pk: str) -> Response:
        """Ask others for approval."""
        plan = self.get_object()
        return self.answer(services.propose_plan(plan_id=plan.pk, actor=request.user))

    @extend_schema(request=CommentInput, responses=ChangePlanOutput)
    @action(detail=True, methods=["post"])
    def approve(self, request: ApiRequest, pk: str) -> Response:
        """Consent to somebody else's plan."""
        plan, body = self.get_object(), self.read(CommentInput)
        return self.answer(services.approve_plan(plan_id=plan.pk, actor=request.user, **body))

    @extend_schema(request=ReasonInput, responses=ChangePlanOutput)
    @action(detail=True, methods=["post"])
    def reject(self, request: ApiRequest, pk: str) -> Response:
        """Say no, with the reason."""
        plan, body = self.get_object(), self.read(ReasonInput)
        return self.answer(services.reject_plan(plan_id=plan.pk, actor=request.user, **body))

    @extend_schema(request=None, responses=ChangePlanOutput)
    @action(detail=True, methods=["post"])
    def apply(self, request: ApiRequest, pk: str) -> Response:
        """Start the waves; the link `operation` shows how far they are."""
        plan = self.get_object()
        return self.answer(services.apply_plan(plan_id=plan.pk, actor=request.user))

    @extend_schema(request=OptionalReasonInput, responses=ChangePlanOutput)
    @action(detail=True, methods=["post"])
    def pause(self, request: ApiRequest, pk: str) -> Response:
        """Begin no other wave."""
        plan, body = self.get_object(), self.read(OptionalReasonInput)
        return self.answer(services.pause_plan(plan_id=plan.pk, actor=request.user, **body))

    @extend_schema(request=OptionalReasonInput, responses=ChangePlanOutput)
    @action(detail=True, methods=["post"])
    def resume(self, request: ApiRequest, pk: str) -> Response:
        """Go on with the waves."""
        plan, body = self.get_object(), self.read(OptionalReasonInput)
        return self.answer(services.resume_plan(plan_id=plan.pk, actor=request.user, **body))

    @extend_schema(request=ReasonInput, responses=ChangePlanOutput)
    @action(detail=True, methods=["post"])
    def rollback(self, request: ApiRequest, pk: str) -> Response:
        """Give the accelerators their roles before, newest wave first."""
        plan, body = self.get_object(), self.read(ReasonInput)
        return self.answer(services.rollback_plan(plan_id=plan.pk, actor=request.user, **body))

    @extend_schema(request=OptionalReasonInput, responses=ChangePlanOutput)
    @action(detail=True, methods=["post"])
    def cancel(self, request: ApiRequest, pk: str) -> Response:
        """Drop the plan, or the waves that have not begun."""
        plan, body = self.get_object(), self.read(OptionalReasonInput)
        return self.answer(services.cancel_plan(plan_id=plan.pk, actor=request.user, **body))


class WaveFilter(filters.FilterSet):
    plan = filters.UUIDFilter(field_name="plan")
    state = filters.ChoiceFilter(choices=Wave.State.choices)

    class Meta:
        model = Wave
        fields: list[str] = []


class WaveViewSet(Reads):
    """Waves of all plans."""

    queryset = Wave.objects.none()
    serializer_class = WaveOutput
    filterset_class = WaveFilter
    view_action = "serving.view_changeplan"

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.waves_for_viewer(self.request.user)
