"""Models and pools."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.reads import LINKS, OBJECT, Reads
from controlplane.common.serializers import OptionalReasonInput, ReasonInput, StrictSerializer
from controlplane.operations.api import OperationOutput
from controlplane.serving import selectors, services
from controlplane.serving.api import export
from controlplane.serving.api.adopting import AdoptAction
from controlplane.serving.api.shared import CONDITIONS
from controlplane.serving.models import Model, ModelArtefact, Pool


class ModelOutput(serializers.ModelSerializer[Model]):
    """A model and what its shape costs."""

    class Meta:
        model = Model
        fields = read_only_fields = [
            "id", "slug", "name", "revision", "precision", "max_model_len", "layers", "hidden",
            "kv_heads", "head_size", "kv_bytes_per_token", "weight_bytes", "flops_per_token",
            "attention_flops_per_token_per_context_token", "shape", "source", "confidence",
            "created_at", "updated_at",
        ]  # fmt: skip


class ModelInput(serializers.ModelSerializer[Model]):
    """A model to be added; `slug` is the name that clients ask for."""

    class Meta:
        model = Model
        exclude = ["id"]


class ModelViewSet(Reads):
    """Models that pools can serve."""

    queryset = Model.objects.none()
    serializer_class = ModelOutput
    sort_fields = {"slug": "slug", "name": "name"}
    dry_runs = frozenset({"create"})

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.models_for_viewer(self.request.user)

    @extend_schema(request=ModelInput, responses={201: ModelOutput})
    def create(self, request: ApiRequest) -> Response:
        """Add a model."""
        return self.answer(
            services.create_model(actor=request.user, **self.read(ModelInput)), created=True
        )


_CANARY = {
    "type": ["object", "null"],
    "description": "New settings that are watched on one router, or that fared worse there.",
    "properties": {
        "state": {"type": "string", "enum": ["observing", "tripped"]},
        "version": {"type": "integer"},
        "router": {"type": "string"},
        "why": {"type": ["string", "null"]},
    },
}


def _canary(pool: Pool) -> dict[str, Any] | None:
    if not pool.canary:
        return None
    return {name: pool.canary.get(name) for name in ("state", "version", "router", "why")}


class PoolOutput(serializers.ModelSerializer[Pool]):
    """A pool: what people decided under `spec`, what was seen under `status`."""

    spec = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField()
    links = serializers.SerializerMethodField()

    class Meta:
        model = Pool
        fields = read_only_fields = [
            "id", "slug", "name", "spec", "status", "created_at", "updated_at", "links",
        ]  # fmt: skip

    @extend_schema_field(OBJECT)
    def get_spec(self, pool: Pool) -> dict[str, Any]:
        """Model, engine, policy and targets."""
        return {
            "model": pool.model.slug,
            "artefact": pool.artefact.slug if pool.artefact is not None else None,
            "role_mode": pool.role_mode,
            "engine": pool.engine,
            "engine_arguments": pool.engine_arguments,
            "containers": pool.containers,
            "policy": {"name": pool.policy, "parameters": pool.policy_parameters},
            "recording": pool.recording,
            "slo": {
                "ttft_p95_seconds": pool.slo_ttft_p95_seconds,
                "tpot_p95_seconds": pool.slo_tpot_p95_seconds,
            },
            "admission": pool.admission,
            "objectives": pool.objectives,
            "rewrites": pool.rewrites,
            "ramp_seconds": pool.ramp_seconds,
            "rollout": {"canary_seconds": pool.canary_seconds, "self_heal": pool.self_heal},
            "currency": pool.currency or None,
        }

    @extend_schema_field(
        {
            "type": "object",
            "properties": {
                "state": {"type": "string"},
                "observed_at": {"type": ["string", "null"], "format": "date-time"},
                "conditions": CONDITIONS,
                "canary": _CANARY,
            },
        }
    )
    def get_status(self, pool: Pool) -> dict[str, Any]:
        """State and conditions, with the time of the last loop run."""
        return {
            "state": pool.state,
            "observed_at": pool.reconciled_at,
            "conditions": pool.conditions,
            "canary": _canary(pool),
        }

    @extend_schema_field(LINKS)
    def get_links(self, pool: Pool) -> dict[str, str]:
        """Addresses of the pool and of what belongs to it."""
        return {
            "self": f"/api/v1/pools/{pool.pk}",
            "change_plans": f"/api/v1/change-plans?pool={pool.slug}",
            "role_assignments": f"/api/v1/role-assignments?pool={pool.slug}",
            "endpoints": f"/api/v1/endpoints?pool={pool.slug}",
            "documents": f"/api/v1/pool-documents?pool={pool.slug}",
            "manifests": f"/api/v1/pools/{pool.pk}/manifests",
        }


_ADMISSION = (
    "queue_requests, queue_seconds, saturation_seconds, evict_sheddable and so on, as in the pool "
    "document. Without queue_requests, 1000 wait under the policy consort and none under others."
)


_CONTAINERS = (
    "How engines run in containers: namespace, images by vendor and so on; docs/kubernetes.md "
    "lists the fields."
)

_REWRITES = (
    "Rules, each with `models` (names that are asked for; none is every name) and `targets` "
    "(`model`, and `weight` on all or on none). A target that is not the pool's model is taken for "
    "an adapter of it."
)


def _objectives() -> serializers.DictField:
    return serializers.DictField(
        child=serializers.IntegerField(),
        required=False,
        help_text="Priority by the name that a request states; below 0 is sheddable.",
    )


def _rewrites() -> serializers.ListField:
    return serializers.ListField(
        child=serializers.DictField(), max_length=500, required=False, help_text=_REWRITES
    )


def _target(least: float, most: float) -> serializers.FloatField:
    return serializers.FloatField(required=False, allow_null=True, min_value=least, max_value=most)


class PoolInput(StrictSerializer):
    """A pool to be added; it has no engines until a change plan gives it some."""

    slug = serializers.SlugField(max_length=120)
    name = serializers.CharField(max_length=200)
    model = serializers.SlugRelatedField(slug_field="slug", queryset=Model.objects.all())
    role_mode = serializers.ChoiceField(choices=Pool.RoleMode.choices)
    engine = serializers.ChoiceField(choices=Pool.Engine.choices, required=False)
    engine_arguments = serializers.DictField(required=False)
    containers = serializers.DictField(required=False, help_text=_CONTAINERS)
    policy = serializers.ChoiceField(choices=Pool.Policy.choices, required=False)
    policy_parameters = serializers.DictField(required=False)
    recording = serializers.DictField(
        required=False,
        help_text="sample_rate, shadow_policies and shadow_rate, as in the pool document.",
    )
    slo_ttft_p95_seconds = _target(0.001, 3600)
    slo_tpot_p95_seconds = _target(0.0001, 60)
    admission = serializers.DictField(required=False, help_text=_ADMISSION)
    objectives = _objectives()
    rewrites = _rewrites()
    ramp_seconds = serializers.FloatField(required=False, min_value=0, max_value=3600)
    currency = serializers.RegexField(r"^[A-Z]{3}$", required=False)


class PolicyInput(ReasonInput):
    """Another routing policy, with the reason."""

    policy = serializers.ChoiceField(choices=Pool.Policy.choices)
    parameters = serializers.DictField(required=False)


class SloInput(ReasonInput):
    """Other targets and rules of waiting, with the reason; what is left out stays as it is."""

    slo_ttft_p95_seconds = _target(0.001, 3600)
    slo_tpot_p95_seconds = _target(0.0001, 60)
    admission = serializers.DictField(required=False, help_text=_ADMISSION)


class RolloutInput(ReasonInput):
    """Other rules of bringing changes, with the reason; what is left out stays as it is."""

    canary_seconds = serializers.FloatField(
        required=False,
        min_value=0,
        max_value=3600,
        help_text="New settings stay this long on one router before the others get them.",
    )
    self_heal = serializers.BooleanField(
        required=False, help_text="Put right what somebody changed in a cluster."
    )


class ContainersInput(ReasonInput):
    """Other settings of containers as a whole, with the reason."""

    containers = serializers.DictField(help_text=_CONTAINERS)


class PoolArtefactInput(ReasonInput):
    """Files of the pool's model, with the reason; null lets engines find the weights themselves."""

    artefact = serializers.SlugRelatedField(
        slug_field="slug", queryset=ModelArtefact.objects.all(), allow_null=True
    )


class GatewayRulesInput(ReasonInput):
    """Other objectives and rewrites, with the reason; what is left out stays as it is."""

    objectives = _objectives()
    rewrites = _rewrites()


class PoolFilter(filters.FilterSet):
    state = filters.ChoiceFilter(choices=Pool.State.choices)
    model = filters.CharFilter(field_name="model__slug")

    class Meta:
        model = Pool
        fields: list[str] = []


class PoolViewSet(AdoptAction, Reads):
    """Engines that serve one model together."""

    queryset = Pool.objects.none()
    serializer_class = PoolOutput
    filterset_class = PoolFilter
    sort_fields = {"slug": "slug", "name": "name", "created_at": "created_at"}
    dry_runs = frozenset({"create"})

    @property
    def query_parameters(self) -> tuple[str, ...]:
        """Names that the export reads."""
        return export.NAMES if self.action == "manifests" else ()

    def get_renderers(self) -> list[Any]:
        """The export is YAML, also for those who accept nothing else."""
        further = [export.YamlRenderer()] if self.action == "manifests" else []
        return [*super().get_renderers(), *further]

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.pools_for_viewer(self.request.user)

    @extend_schema(request=PoolInput, responses={201: PoolOutput})
    def create(self, request: ApiRequest) -> Response:
        """Add a pool."""
        return self.answer(
            services.create_pool(actor=request.user, **self.read(PoolInput)), created=True
        )

    @extend_schema(request=PolicyInput, responses=PoolOutput)
    @action(detail=True, methods=["post"])
    def policy(self, request: ApiRequest, pk: str) -> Response:
        """Change the routing policy; routers get it as the next document version."""
        pool = self.get_object()
        body = self.read(PolicyInput)
        return self.answer(services.change_policy(pool_id=pool.pk, actor=request.user, **body))

    @extend_schema(request=SloInput, responses=PoolOutput)
    @action(detail=True, methods=["post"])
    def slo(self, request: ApiRequest, pk: str) -> Response:
        """Change the targets and who waits for them; routers get it as the next document version.

        A target of null is taken away; `admission` is replaced as a whole.
        """
        pool = self.get_object()
        changes = self.read(SloInput)
        reason = changes.pop("reason")
        return self.answer(
            services.change_slo(pool_id=pool.pk, changes=changes, reason=reason, actor=request.user)
        )

    @extend_schema(request=GatewayRulesInput, responses=PoolOutput)
    @action(detail=True, methods=["post"], url_path="gateway-rules")
    def gateway_rules(self, request: ApiRequest, pk: str) -> Response:
        """Change objectives and rewrites; routers get them as the next document version.

        Each of the two is replaced as a whole.
        """
        pool = self.get_object()
        changes = self.read(GatewayRulesInput)
        reason = changes.pop("reason")
        return self.answer(
            services.change_gateway_rules(
                pool_id=pool.pk, changes=changes, reason=reason, actor=request.user
            )
        )

    @extend_schema(request=RolloutInput, responses=PoolOutput)
    @action(detail=True, methods=["post"])
    def rollout(self, request: ApiRequest, pk: str) -> Response:
        """Change how routers get new settings, and whether drift in clusters is put right."""
        pool = self.get_object()
        changes = self.read(RolloutInput)
        reason = changes.pop("reason")
        return self.answer(
            services.change_rollout(
                pool_id=pool.pk, changes=changes, reason=reason, actor=request.user
            )
        )

    @extend_schema(request=PoolArtefactInput, responses=PoolOutput)
    @action(detail=True, methods=["post"])
    def artefact(self, request: ApiRequest, pk: str) -> Response:
        """Say which files the engines of the next plans load."""
        pool, values = self.get_object(), self.read(PoolArtefactInput)
        chosen = values.pop("artefact")
        row = services.set_pool_artefact(
            pool_id=pool.pk, artefact_id=chosen and chosen.pk, actor=request.user, **values
        )
        return self.answer(row)

    @extend_schema(request=ContainersInput, responses=PoolOutput)
    @action(detail=True, methods=["post"])
    def containers(self, request: ApiRequest, pk: str) -> Response:
        """Change how engines run in containers; those that run take it with their next change."""
        pool = self.get_object()
        body = self.read(ContainersInput)
        return self.answer(services.change_containers(pool_id=pool.pk, actor=request.user, **body))

    @extend_schema(parameters=export.PARAMETERS, responses={(200, "application/yaml"): str})
    @action(detail=True, methods=["get"])
    def manifests(self, request: ApiRequest, pk: str) -> Response:
        """The pool as objects of a cluster, one YAML document each; nothing is changed."""
        pool = self.get_object()
        # The text follows the role ledger, not the row: the row's version says nothing of it.
        self.found = None
        question = export.question_of(request.query_params)
        text = selectors.pool_manifests(pool, question, viewer=request.user)
        return export.written(request, text)

    @extend_schema(request=OptionalReasonInput, responses={202: OperationOutput})
    @action(detail=True, methods=["post"], url_path="reset-knowledge")
    def reset_knowledge(self, request: ApiRequest, pk: str) -> Response:
        """Empty the engines' prefix caches and what routers learned; an operation."""
        pool = self.get_object()
        body = self.read(OptionalReasonInput)
        operation = services.reset_pool_knowledge(pool_id=pool.pk, actor=request.user, **body)
        return Response(
            OperationOutput(operation).data,
            status=status.HTTP_202_ACCEPTED,
            headers={"Location": f"/api/v1/operations/{operation.pk}"},
        )
