"""Observations as they came; findings with their answers."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.serializers import ReasonInput
from controlplane.operations.api import OperationOutput
from inventory import selectors, services
from inventory.models import Finding, Observation


class FactOutput(serializers.Serializer[Any]):
    """One thing that one source says."""

    name = serializers.CharField(read_only=True)
    value = serializers.JSONField(read_only=True)
    source = serializers.CharField(read_only=True)  # type: ignore[assignment]  # a member named so
    place = serializers.CharField(read_only=True)


class FindingOutput(serializers.ModelSerializer[Finding]):
    """Intended beside observed, with what accepting would do."""

    display = serializers.CharField(source="__str__", read_only=True)
    node = serializers.UUIDField(source="node_id", read_only=True, allow_null=True)
    cluster = serializers.CharField(source="cluster.slug", read_only=True)
    slot = serializers.SerializerMethodField()
    closed_by = serializers.CharField(
        source="closed_by.username", read_only=True, allow_null=True, default=None
    )
    observed_by = serializers.CharField(source="observation.source", read_only=True)
    facts = serializers.SerializerMethodField()

    class Meta:
        model = Finding
        fields = read_only_fields = [
            "id", "display", "cluster", "node", "hostname", "slot", "kind", "intended", "observed",
            "observed_by", "facts", "suggestion", "state", "seen_at", "closed_at", "closed_by",
            "reason", "created_at", "updated_at",
        ]  # fmt: skip

    def get_slot(self, finding: Finding) -> int | None:
        """None if the finding is about the node as such."""
        return None if finding.slot < 0 else finding.slot

    @extend_schema_field(FactOutput(many=True))
    def get_facts(self, finding: Finding) -> list[dict[str, Any]]:
        """What each source of a cluster said; empty for an agent, which is one source."""
        facts: list[dict[str, Any]] = finding.observation.content.get("facts", [])
        return facts


class AcceptInput(ReasonInput):
    """The reason, and the accelerator model where no source names it."""

    model = serializers.SlugField(max_length=100, required=False, allow_blank=True)


class AcceptManyInput(AcceptInput):
    """Findings by their ids, or all open ones of a cluster and a kind."""

    findings = serializers.ListField(
        child=serializers.UUIDField(), required=False, max_length=services.MOST_FINDINGS
    )
    cluster = serializers.SlugField(max_length=100, required=False)
    kind = serializers.ChoiceField(choices=Finding.Kind.choices, required=False)


class FindingFilter(django_filters.FilterSet):
    """Open findings only, unless a state is asked for."""

    node = django_filters.UUIDFilter(field_name="node_id")
    cluster = django_filters.CharFilter(field_name="cluster__slug")
    state = django_filters.ChoiceFilter(choices=Finding.State.choices)

    class Meta:
        model = Finding
        fields = ["kind", "hostname"]

    def filter_queryset(self, queryset: "QuerySet[Finding]") -> "QuerySet[Finding]":
        """Rows that pass every filter."""
        rows: QuerySet[Finding] = super().filter_queryset(queryset)
        is_asked = self.form.cleaned_data.get("state")
        return rows if is_asked else rows.filter(state=Finding.State.OPEN)


class FindingViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Finding]
):
    """Differences between what was meant and what was found."""

    request: ApiRequest
    serializer_class = FindingOutput
    filterset_class = FindingFilter
    dry_runs = frozenset({"accept"})
    ordering = ("created_at",)
    sort_fields = {"created_at": "created_at", "seen_at": "seen_at", "hostname": "hostname"}

    def get_queryset(self) -> "QuerySet[Finding]":
        """Findings that the caller may see."""
        return selectors.findings_for_viewer(self.request.user)

    @extend_schema(request=AcceptInput, responses=FindingOutput)
    @action(detail=True, methods=["post"])
    def accept(self, request: ApiRequest, pk: str) -> Response:
        """Change the plan to what was observed."""
        return self._answer(services.accept_finding, AcceptInput)

    @extend_schema(request=AcceptManyInput, responses={202: OperationOutput})
    @action(detail=False, methods=["post"], url_path="accept-many")
    def accept_many(self, request: ApiRequest) -> Response:
        """Take over many findings, each by itself; an operation."""
        body = AcceptManyInput(data=request.data)
        body.is_valid(raise_exception=True)
        operation = services.start_accepting(actor=request.user, **body.validated_data)
        return Response(
            OperationOutput(operation).data,
            status=202,
            headers={"Location": f"/api/v1/operations/{operation.pk}"},
        )

    @extend_schema(request=ReasonInput, responses=FindingOutput)
    @action(detail=True, methods=["post"])
    def override(self, request: ApiRequest, pk: str) -> Response:
        """Keep the plan: the observation is not right."""
        return self._answer(services.override_finding)

    @extend_schema(request=ReasonInput, responses=FindingOutput)
    @action(detail=True, methods=["post"])
    def dismiss(self, request: ApiRequest, pk: str) -> Response:
        """Let it be: the difference does not matter."""
        return self._answer(services.dismiss_finding)

    def _answer(self, service: Any, form: type[ReasonInput] = ReasonInput) -> Response:
        finding, body = self.get_object(), form(data=self.request.data)
        body.is_valid(raise_exception=True)
        service(finding_id=finding.pk, actor=self.request.user, **body.validated_data)
        return Response(FindingOutput(self.get_queryset().get(pk=finding.pk)).data)


class ObservationOutput(serializers.ModelSerializer[Observation]):
    """What a discovery saw on a node, as it came."""

    display = serializers.CharField(source="__str__", read_only=True)
    cluster = serializers.CharField(source="cluster.slug", read_only=True)
    node = serializers.UUIDField(source="node_id", read_only=True, allow_null=True)

    class Meta:
        model = Observation
        fields = read_only_fields = [
            "id", "display", "cluster", "node", "hostname", "vendor", "source", "seen_at",
            "content", "created_at",
        ]  # fmt: skip


class ObservationFilter(django_filters.FilterSet):
    """Observations of a node or a cluster."""

    node = django_filters.UUIDFilter(field_name="node_id")
    cluster = django_filters.CharFilter(field_name="cluster__slug")

    class Meta:
        model = Observation
        fields = ["hostname", "source"]


class ObservationViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Observation]
):
    """Looks at nodes, latest first."""

    request: ApiRequest
    serializer_class = ObservationOutput
    filterset_class = ObservationFilter
    ordering = ("-seen_at",)
    sort_fields = {"seen_at": "seen_at", "hostname": "hostname"}

    def get_queryset(self) -> "QuerySet[Observation]":
        """Observations that the caller may see."""
        return selectors.observations_for_viewer(self.request.user)
