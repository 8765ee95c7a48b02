"""Nodes: list, read, create, and one action per thing a person can decide."""

from typing import Any

import django_filters
from django.db.models import Q, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.serializers import OptionalReasonInput, ReasonInput, VisibleRow
from inventory import selectors, services
from inventory.models import Accelerator, Node
from inventory.models.words import Health


class NodeOutput(serializers.ModelSerializer[Node]):
    """A node with where it is, what it holds, and health as far as it is known at present."""

    display = serializers.CharField(source="hostname", read_only=True)
    cluster = serializers.CharField(source="cluster.slug", read_only=True)
    site = serializers.CharField(source="cluster.site.slug", read_only=True)
    jurisdiction = serializers.CharField(source="cluster.site.jurisdiction", read_only=True)
    node_type = serializers.CharField(source="node_type.slug", read_only=True)
    model = serializers.CharField(source="node_type.accelerator_model.slug", read_only=True)
    accelerator_count = serializers.IntegerField(read_only=True)
    healthy_accelerators = serializers.IntegerField(read_only=True)
    open_findings = serializers.IntegerField(read_only=True)
    health = serializers.ChoiceField(
        source="effective_health", choices=Health.choices, read_only=True
    )
    health_reason = serializers.CharField(source="effective_reason", read_only=True)
    links = serializers.SerializerMethodField()

    class Meta:
        model = Node
        fields = read_only_fields = [
            "id", "display", "hostname", "cluster", "site", "jurisdiction", "vendor", "model",
            "node_type", "accelerator_count", "healthy_accelerators", "state", "state_since",
            "health", "health_reason", "health_since", "observed_at", "open_findings", "rack",
            "owner", "operator", "tags", "storage_bytes_per_second", "delivered_at", "retired_at",
            "created_at", "updated_at", "links",
        ]  # fmt: skip

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
    def get_links(self, node: Node) -> dict[str, str]:
        """Addresses of the node and of what belongs to it."""
        return {
            "self": f"/api/v1/nodes/{node.pk}",
            "accelerators": f"/api/v1/accelerators?node={node.pk}",
            "findings": f"/api/v1/findings?node={node.pk}",
        }


class NodeInput(OptionalReasonInput):
    """A node to be added, with accelerators of one model."""

    cluster = VisibleRow(selectors.clusters_for_viewer, source="cluster_id")
    hostname = serializers.CharField(max_length=253)
    model = serializers.SlugField(max_length=100)
    accelerators = serializers.IntegerField()
    serials = serializers.ListField(
        child=serializers.CharField(max_length=128), required=False, max_length=64
    )
    state = serializers.ChoiceField(choices=["planned", "provisioning", "ready"], required=False)
    rack = serializers.CharField(max_length=50, required=False, allow_blank=True)
    owner = serializers.CharField(max_length=100, required=False, allow_blank=True)
    operator = serializers.CharField(max_length=100, required=False, allow_blank=True)
    tags = serializers.ListField(
        child=serializers.CharField(max_length=50), required=False, max_length=50
    )


class NodeChange(ReasonInput):
    """What may be changed of a node, with the reason."""

    storage_bytes_per_second = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=10**13,
        help_text="How fast models are read from its storage.",
    )  # fmt: skip
    rack = serializers.CharField(max_length=50, required=False, allow_blank=True)
    owner = serializers.CharField(max_length=100, required=False, allow_blank=True)
    operator = serializers.CharField(max_length=100, required=False, allow_blank=True)
    tags = serializers.ListField(
        child=serializers.CharField(max_length=50), required=False, max_length=50
    )


class MomentOutput(serializers.Serializer[Any]):
    """A line of a node's history."""

    at = serializers.DateTimeField()
    kind = serializers.ChoiceField(choices=["audit", "observation", "finding"])
    what = serializers.CharField()
    who = serializers.CharField(allow_blank=True)
    reason = serializers.CharField(allow_blank=True)
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class NodeFilter(django_filters.FilterSet):
    """Retired nodes are shown only if they are asked for."""

    site = django_filters.CharFilter(field_name="cluster__site__slug")
    cluster = django_filters.CharFilter(field_name="cluster__slug")
    model = django_filters.CharFilter(field_name="node_type__accelerator_model__slug")
    state = django_filters.ChoiceFilter(choices=Node.State.choices)
    health = django_filters.ChoiceFilter(field_name="effective_health", choices=Health.choices)
    tag = django_filters.CharFilter(method="with_tag")
    q = django_filters.CharFilter(method="search")

    class Meta:
        model = Node
        fields = ["vendor"]

    def filter_queryset(self, queryset: "QuerySet[Node]") -> "QuerySet[Node]":
        """Rows that pass every filter."""
        rows: QuerySet[Node] = super().filter_queryset(queryset)
        is_list = not self.form.cleaned_data.get("state")
        return rows.exclude(state=Node.State.RETIRED) if is_list else rows

    def with_tag(self, rows: "QuerySet[Node]", _name: str, tag: str) -> "QuerySet[Node]":
        """Nodes that have the tag."""
        return rows.filter(tags__contains=[tag])

    def search(self, rows: "QuerySet[Node]", _name: str, text: str) -> "QuerySet[Node]":
        """Part of a hostname, or a whole serial."""
        holders = Accelerator.objects.filter(serial__iexact=text).values("node")
        return rows.filter(Q(hostname__icontains=text) | Q(pk__in=holders))


class NodeViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Node]):
    """Machines with accelerators."""

    request: ApiRequest
    serializer_class = NodeOutput
    filterset_class = NodeFilter
    lookup_slug = "hostname"
    lookup_first = ~Q(state=Node.State.RETIRED)
    dry_runs = frozenset({"create", "cordon", "uncordon", "drain", "retire"})
    ordering = ("hostname",)
    sort_fields = {
        "hostname": "hostname",
        "created_at": "created_at",
        "observed_at": "observed_at",
        "vendor": "vendor",
        "state": "state",
    }

    def get_queryset(self) -> "QuerySet[Node]":
        """Nodes that the caller may see."""
        return selectors.nodes_for_viewer(self.request.user)

    @extend_schema(request=NodeInput, responses={201: NodeOutput})
    def create(self, request: ApiRequest) -> Response:
        """Add a node with its accelerators."""
        body = NodeInput(data=request.data, context=self.get_serializer_context())
        body.is_valid(raise_exception=True)
        node = services.create_node(actor=request.user, **body.validated_data)
        return Response(
            self._shown(node), status=201, headers={"Location": f"/api/v1/nodes/{node.pk}"}
        )

    @extend_schema(request=NodeChange, responses=NodeOutput)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Change rack, owner, operator, tags or the speed of the storage."""
        node, body = self.get_object(), NodeChange(data=request.data)
        body.is_valid(raise_exception=True)
        services.change_node(node_id=node.pk, actor=request.user, **body.validated_data)
        return Response(self._shown(node))

    @extend_schema(
        request=None,
        responses={204: None},
        parameters=[
            OpenApiParameter(
                "X-Change-Reason",
                str,
                OpenApiParameter.HEADER,
                required=True,
                description="Why, percent-encoded.",
            )
        ],
    )
    def destroy(self, request: ApiRequest, pk: str) -> Response:
        """Retire the node, as `retire` does; a second time changes nothing."""
        self._decide(services.retire_node)
        return Response(status=204)

    @extend_schema(request=ReasonInput, responses=NodeOutput)
    @action(detail=True, methods=["post"])
    def cordon(self, request: ApiRequest, pk: str) -> Response:
        """Stop new placements; what runs goes on."""
        return self._decide(services.cordon_node)

    @extend_schema(request=ReasonInput, responses=NodeOutput)
    @action(detail=True, methods=["post"])
    def uncordon(self, request: ApiRequest, pk: str) -> Response:
        """Let placements come back."""
        return self._decide(services.uncordon_node)

    @extend_schema(request=ReasonInput, responses=NodeOutput)
    @action(detail=True, methods=["post"])
    def drain(self, request: ApiRequest, pk: str) -> Response:
        """Ask that what runs is moved away."""
        return self._decide(services.drain_node)

    @extend_schema(request=ReasonInput, responses=NodeOutput)
    @action(detail=True, methods=["post"])
    def retire(self, request: ApiRequest, pk: str) -> Response:
        """Take the node off the books; its row stays."""
        return self._decide(services.retire_node)

    @extend_schema(request={"application/json": {"type": "object"}}, responses={202: None})
    @action(detail=True, methods=["post"])
    def report(self, request: ApiRequest, pk: str) -> Response:
        """Take in what the node agent printed."""
        node = self.get_object()
        observation = services.record_report(
            cluster_id=node.cluster_id,
            hostname=node.hostname,
            report=request.data,
            actor=request.user,
        )
        return Response({"id": observation.pk, "seen_at": observation.seen_at}, status=202)

    @extend_schema(responses=MomentOutput(many=True))
    @action(detail=True, methods=["get"])
    def timeline(self, request: ApiRequest, pk: str) -> Response:
        """The node's history, newest first."""
        moments = selectors.timeline(self.get_object())
        return Response({"items": MomentOutput(moments, many=True).data})

    def _decide(self, service: Any) -> Response:
        node, body = self.get_object(), ReasonInput(data=self.request.data)
        body.is_valid(raise_exception=True)
        service(node_id=node.pk, actor=self.request.user, **body.validated_data)
        return Response(self._shown(node))

    def _shown(self, node: Node) -> Any:
        return NodeOutput(self.get_queryset().get(pk=node.pk)).data
