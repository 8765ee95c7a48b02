"""Clusters: connections, how they are, and tests of them."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.serializers import OptionalReasonInput, ReasonInput, VisibleRow
from controlplane.operations.api import OperationOutput
from inventory import clusterwords, selectors, services
from inventory.api.adoptable import AdoptableAction
from inventory.kubernetes import wanted
from inventory.models import Cluster

_REFERENCE = "`in-cluster`, or the name of a folder below CLUSTER_CREDENTIALS_DIR of the workers."


class KindOutput(serializers.Serializer[Any]):
    """A kind of objects that Consort can use."""

    api_version = serializers.CharField()
    kind = serializers.CharField()
    install = serializers.CharField(help_text="What brings it; empty: Kubernetes itself.")
    since = serializers.CharField(help_text="Version of Kubernetes that brings it, like 1.34.")
    needed = serializers.BooleanField(help_text="Without it no engine runs in the cluster.")


class ClusterOutput(serializers.ModelSerializer[Cluster]):
    """A cluster with when it was last heard of; credentials are never here."""

    display = serializers.CharField(source="name", read_only=True)
    site = serializers.CharField(source="site.slug", read_only=True)
    node_count = serializers.IntegerField(read_only=True)
    connection = serializers.ChoiceField(
        choices=Cluster.Connection.choices, read_only=True,
        help_text="How the last attempt went; null where there is no API server.",
    )  # fmt: skip
    kinds = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField(), min_length=2, max_length=2),
        read_only=True, allow_null=True,
        help_text="[apiVersion, kind] of what Consort can use there; null: nobody asked yet.",
    )  # fmt: skip
    missing_kinds = serializers.SerializerMethodField()
    missing_rights = serializers.ListField(
        child=serializers.CharField(), read_only=True, allow_null=True,
        help_text="Like `patch deployments.apps in serving`; null: nobody asked yet.",
    )  # fmt: skip
    advice = serializers.SerializerMethodField()

    class Meta:
        model = Cluster
        fields = read_only_fields = [
            "id", "slug", "display", "name", "kind", "site", "connection_reference", "namespace",
            "connection", "answered_at", "asked_at", "error", "error_code", "advice", "failures",
            "retry_at", "tested_at", "version", "kinds", "missing_kinds", "missing_rights",
            "node_count", "created_at", "updated_at",
        ]  # fmt: skip

    @extend_schema_field(KindOutput(many=True, allow_null=True))
    def get_missing_kinds(self, cluster: Cluster) -> list[dict[str, Any]] | None:
        """What a test did not find; null: nobody asked yet."""
        if cluster.kinds is None:
            return None
        return [
            {
                "api_version": kind.api_version, "kind": kind.kind, "install": kind.brings,
                "since": kind.since, "needed": kind.needed,
            }
            for kind in wanted.missing(cluster.kinds)
        ]  # fmt: skip

    def get_advice(self, cluster: Cluster) -> str:
        """What to do about the error, in the caller's language."""
        words = clusterwords.of_cluster(cluster)
        return words.advice if words else ""


class ClusterInput(OptionalReasonInput):
    """A cluster to be added."""

    slug = serializers.SlugField(max_length=100)
    name = serializers.CharField(max_length=100)
    site = VisibleRow(selectors.sites_for_viewer, source="site_id")
    kind = serializers.ChoiceField(choices=Cluster.Kind.choices)
    connection_reference = serializers.CharField(
        max_length=200, required=False, allow_blank=True, help_text=_REFERENCE
    )
    namespace = serializers.CharField(
        max_length=63, required=False, help_text="Where engines run in the cluster."
    )


class ClusterChange(ReasonInput):
    """What may be changed of a cluster, with the reason."""

    name = serializers.CharField(max_length=100, required=False)
    connection_reference = serializers.CharField(
        max_length=200, required=False, allow_blank=True, help_text=_REFERENCE
    )
    namespace = serializers.CharField(max_length=63, required=False)


class ClusterFilter(django_filters.FilterSet):
    """Clusters by site and kind."""

    site = django_filters.CharFilter(field_name="site__slug")

    class Meta:
        model = Cluster
        fields = ["kind"]


class ClusterViewSet(
    AdoptableAction,
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet[Cluster],
):
    """Connections to places where nodes are."""

    request: ApiRequest
    serializer_class = ClusterOutput
    filterset_class = ClusterFilter
    ordering = ("slug",)
    sort_fields = {"slug": "slug", "name": "name"}

    def get_queryset(self) -> "QuerySet[Cluster]":
        """Clusters that the caller may see."""
        return selectors.clusters_for_viewer(self.request.user)

    @extend_schema(request=ClusterInput, responses={201: ClusterOutput})
    def create(self, request: ApiRequest) -> Response:
        """Add a cluster to a site; the connection of a Kubernetes cluster is tested at once."""
        body = ClusterInput(data=request.data, context=self.get_serializer_context())
        body.is_valid(raise_exception=True)
        cluster = services.create_cluster(actor=request.user, **body.validated_data)
        return Response(
            self._shown(cluster), status=201, headers={"Location": f"/api/v1/clusters/{cluster.pk}"}
        )

    @extend_schema(request=ClusterChange, responses=ClusterOutput)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Change name, connection reference or namespace; a new connection is tested at once."""
        cluster, body = self.get_object(), ClusterChange(data=request.data)
        body.is_valid(raise_exception=True)
        services.change_cluster(cluster_id=cluster.pk, actor=request.user, **body.validated_data)
        return Response(self._shown(cluster))

    @extend_schema(request=OptionalReasonInput, responses={202: OperationOutput})
    @action(detail=True, methods=["post"], url_path="test-connection")
    def test_connection(self, request: ApiRequest, pk: str) -> Response:
        """Ask the cluster for its version, its kinds and our rights; an operation."""
        cluster, body = self.get_object(), OptionalReasonInput(data=request.data)
        body.is_valid(raise_exception=True)
        operation = services.start_connection_test(
            cluster_id=cluster.pk, actor=request.user, **body.validated_data
        )
        return Response(
            OperationOutput(operation).data,
            status=202,
            headers={"Location": f"/api/v1/operations/{operation.pk}"},
        )

    def _shown(self, cluster: Cluster) -> Any:
        return ClusterOutput(self.get_queryset().get(pk=cluster.pk)).data
