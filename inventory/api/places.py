"""Sites and clusters."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.serializers import (
    OptionalReasonInput,
    ReasonInput,
    StrictSerializer,
    VisibleRow,
)
from inventory import selectors, services
from inventory.models import Cluster, Site


class SiteOutput(serializers.ModelSerializer[Site]):
    """A site with its figures; `figures` says where each comes from."""

    display = serializers.CharField(source="name", read_only=True)
    node_count = serializers.IntegerField(read_only=True)

    class Meta:
        model = Site
        fields = read_only_fields = [
            "id", "slug", "display", "name", "country", "jurisdiction", "pue", "tariff_per_kwh",
            "currency", "carbon_grams_per_kwh", "figures", "node_count", "created_at", "updated_at",
        ]  # fmt: skip


class SiteFigures(StrictSerializer):
    """Figures of a site; decimal strings."""

    pue = serializers.DecimalField(5, 3, required=False, allow_null=True)
    tariff_per_kwh = serializers.DecimalField(12, 6, required=False, allow_null=True)
    currency = serializers.CharField(max_length=3, required=False, allow_blank=True)
    carbon_grams_per_kwh = serializers.DecimalField(8, 2, required=False, allow_null=True)
    figures = serializers.DictField(required=False)


class SiteInput(SiteFigures, OptionalReasonInput):
    """A site to be added."""

    slug = serializers.SlugField(max_length=100)
    name = serializers.CharField(max_length=100)
    country = serializers.CharField(max_length=2)
    jurisdiction = serializers.CharField(max_length=32, required=False)


class SiteChange(SiteFigures, ReasonInput):
    """What may be changed of a site, with the reason."""

    name = serializers.CharField(max_length=100, required=False)
    jurisdiction = serializers.CharField(max_length=32, required=False)


class SiteFilter(django_filters.FilterSet):
    """Sites by where they are."""

    class Meta:
        model = Site
        fields = ["country", "jurisdiction"]


class SiteViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Site]):
    """Buildings: failure, price and jurisdiction."""

    request: ApiRequest
    serializer_class = SiteOutput
    filterset_class = SiteFilter
    dry_runs = frozenset({"create"})
    ordering = ("slug",)
    sort_fields = {"slug": "slug", "name": "name"}

    def get_queryset(self) -> "QuerySet[Site]":
        """Sites that the caller may see."""
        return selectors.sites_for_viewer(self.request.user)

    @extend_schema(request=SiteInput, responses={201: SiteOutput})
    def create(self, request: ApiRequest) -> Response:
        """Add a site."""
        body = SiteInput(data=request.data)
        body.is_valid(raise_exception=True)
        site = services.create_site(actor=request.user, **body.validated_data)
        return Response(
            self._shown(site), status=201, headers={"Location": f"/api/v1/sites/{site.pk}"}
        )

    @extend_schema(request=SiteChange, responses=SiteOutput)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Change name, jurisdiction or figures."""
        site, body = self.get_object(), SiteChange(data=request.data)
        body.is_valid(raise_exception=True)
        services.change_site(site_id=site.pk, actor=request.user, **body.validated_data)
        return Response(self._shown(site))

    def _shown(self, site: Site) -> Any:
        return SiteOutput(self.get_queryset().get(pk=site.pk)).data


class ClusterOutput(serializers.ModelSerializer[Cluster]):
    """A cluster with when it was last heard of; credentials are never here."""

    display = serializers.CharField(source="name", read_only=True)
    site = serializers.CharField(source="site.slug", read_only=True)
    node_count = serializers.IntegerField(read_only=True)

    class Meta:
        model = Cluster
        fields = read_only_fields = [
            "id", "slug", "display", "name", "kind", "site", "answered_at", "asked_at", "error",
            "node_count", "created_at", "updated_at",
        ]  # fmt: skip


class ClusterInput(OptionalReasonInput):
    """A cluster to be added."""

    slug = serializers.SlugField(max_length=100)
    name = serializers.CharField(max_length=100)
    site = VisibleRow(selectors.sites_for_viewer, source="site_id")
    kind = serializers.ChoiceField(choices=Cluster.Kind.choices)


class ClusterFilter(django_filters.FilterSet):
    """Clusters by site and kind."""

    site = django_filters.CharFilter(field_name="site__slug")

    class Meta:
        model = Cluster
        fields = ["kind"]


class ClusterViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Cluster]
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
        """Add a cluster to a site."""
        body = ClusterInput(data=request.data, context=self.get_serializer_context())
        body.is_valid(raise_exception=True)
        cluster = services.create_cluster(actor=request.user, **body.validated_data)
        shown = ClusterOutput(self.get_queryset().get(pk=cluster.pk)).data
        return Response(shown, status=201, headers={"Location": f"/api/v1/clusters/{cluster.pk}"})
