"""Sites."""

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
)
from inventory import selectors, services
from inventory.models import Site

_HOST = r"^\.?[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$"


class SiteOutput(serializers.ModelSerializer[Site]):
    """A site with its figures; `figures` says where each comes from."""

    display = serializers.CharField(source="name", read_only=True)
    node_count = serializers.IntegerField(read_only=True)

    class Meta:
        model = Site
        fields = read_only_fields = [
            "id", "slug", "display", "name", "country", "jurisdiction", "pue", "tariff_per_kwh",
            "currency", "carbon_grams_per_kwh", "figures", "air_gapped", "internal_hosts",
            "node_count", "created_at", "updated_at",
        ]  # fmt: skip


class SiteFigures(StrictSerializer):
    """Figures of a site; decimal strings."""

    pue = serializers.DecimalField(5, 3, required=False, allow_null=True)
    tariff_per_kwh = serializers.DecimalField(12, 6, required=False, allow_null=True)
    currency = serializers.CharField(max_length=3, required=False, allow_blank=True)
    carbon_grams_per_kwh = serializers.DecimalField(8, 2, required=False, allow_null=True)
    figures = serializers.DictField(required=False)
    air_gapped = serializers.BooleanField(
        required=False, help_text="Nothing there may ask anybody outside."
    )
    internal_hosts = serializers.ListField(
        child=serializers.RegexField(_HOST, max_length=253), max_length=200, required=False,
        help_text="Registries and stores inside: a host, or `.example.internal` for all below.",
    )  # fmt: skip


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
