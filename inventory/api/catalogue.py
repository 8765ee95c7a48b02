"""Vendors, accelerator models and types of nodes."""

from dataclasses import asdict
from typing import Any

import django_filters
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from inventory import selectors
from inventory.facts import loading
from inventory.models import AcceleratorModel, NodeType
from inventory.vendors import vendors


class VendorOutput(serializers.Serializer[Any]):
    """A vendor file with what the vendor's software exposes, and how sure that is."""

    slug = serializers.CharField()
    name = serializers.CharField()
    probe_command = serializers.ListField(child=serializers.CharField())
    resources = serializers.ListField(child=serializers.ListField())
    exporter = serializers.CharField(allow_null=True)
    exporter_port = serializers.IntegerField(allow_null=True)
    metrics = serializers.DictField()
    dra_driver = serializers.CharField(allow_null=True)
    device_classes = serializers.ListField(child=serializers.CharField())
    images = serializers.ListField(child=serializers.CharField())
    process_env = serializers.CharField(allow_null=True)
    evidence = serializers.CharField()
    sources = serializers.ListField(child=serializers.CharField())


_FACTS = (
    "resources", "exporter", "exporter_port", "metrics", "dra_driver", "device_classes", "images",
    "process_env", "evidence", "sources",
)  # fmt: skip


class VendorViewSet(viewsets.GenericViewSet[AcceleratorModel]):
    """Makers of accelerators that have a vendor file; they come with the product."""

    request: ApiRequest
    serializer_class = VendorOutput
    pagination_class = None
    filter_backends = ()
    view_action = "inventory.view_acceleratormodel"
    lookup_value_regex = "[a-z-]+"

    @extend_schema(responses=VendorOutput(many=True))
    def list(self, request: ApiRequest) -> Response:
        """All vendors, by slug."""
        return Response({"items": [_vendor(slug) for slug in vendors()], "next": None})

    @extend_schema(
        responses=VendorOutput,
        parameters=[OpenApiParameter("id", str, OpenApiParameter.PATH, description="Slug.")],
    )
    def retrieve(self, request: ApiRequest, pk: str) -> Response:
        """One vendor by its slug."""
        if pk not in vendors():
            raise Http404
        return Response(_vendor(pk))


def _vendor(slug: str) -> dict[str, Any]:
    facts = asdict(loading.vendors()[slug])
    plugin = vendors()[slug]
    said = {name: facts[name] for name in _FACTS}
    own = {"slug": slug, "name": plugin.name, "probe_command": list(plugin.probe_command)}
    return said | own


class AcceleratorModelOutput(serializers.ModelSerializer[AcceleratorModel]):
    """A model with its figures; each figure of `figures` has source and confidence."""

    display = serializers.CharField(source="name", read_only=True)
    accelerator_count = serializers.IntegerField(read_only=True)
    figures = serializers.SerializerMethodField()

    class Meta:
        model = AcceleratorModel
        fields = read_only_fields = [
            "id", "slug", "display", "vendor", "name", "memory_bytes",
            "bandwidth_bytes_per_second", "bf16_tflops", "fp8_tflops", "tdp_watts",
            "link_bytes_per_second", "figures", "accelerator_count", "updated_at",
        ]  # fmt: skip

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "object"}})
    def get_figures(self, model: AcceleratorModel) -> dict[str, Any]:
        """Value, source, confidence and note by the name of the figure."""
        return dict(model.figures)


class AcceleratorModelFilter(django_filters.FilterSet):
    """Models by vendor."""

    class Meta:
        model = AcceleratorModel
        fields = ["vendor"]


class AcceleratorModelViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[AcceleratorModel]
):
    """The catalogue of accelerator models."""

    request: ApiRequest
    serializer_class = AcceleratorModelOutput
    filterset_class = AcceleratorModelFilter
    ordering = ("vendor", "slug")
    sort_fields = {"vendor": "vendor", "slug": "slug"}

    def get_queryset(self) -> "QuerySet[AcceleratorModel]":
        """Models that the caller may see."""
        return selectors.models_for_viewer(self.request.user)


class NodeTypeOutput(serializers.ModelSerializer[NodeType]):
    """How many accelerators of which model."""

    display = serializers.CharField(source="name", read_only=True)
    model = serializers.CharField(source="accelerator_model.slug", read_only=True)
    node_count = serializers.IntegerField(read_only=True)

    class Meta:
        model = NodeType
        fields = read_only_fields = [
            "id", "slug", "display", "name", "vendor", "model", "accelerator_count", "node_count",
            "updated_at",
        ]  # fmt: skip


class NodeTypeFilter(django_filters.FilterSet):
    """Types by vendor."""

    class Meta:
        model = NodeType
        fields = ["vendor"]


class NodeTypeViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[NodeType]
):
    """Kinds of nodes; made when a node of the kind is added."""

    request: ApiRequest
    serializer_class = NodeTypeOutput
    filterset_class = NodeTypeFilter
    ordering = ("slug",)
    sort_fields = {"slug": "slug"}

    def get_queryset(self) -> "QuerySet[NodeType]":
        """Types that the caller may see."""
        return selectors.node_types_for_viewer(self.request.user)
