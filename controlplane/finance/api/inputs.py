"""What people enter: costs of nodes, figures of sites."""

from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.reads import Reads
from controlplane.common.serializers import (
    MomentField,
    OptionalReasonInput,
    ReasonInput,
    VisibleRow,
)
from controlplane.finance import selectors, services
from controlplane.finance.models import AssetCost, SiteCostPeriod
from controlplane.finance.serializers import MoneyField
from inventory.models import Node
from inventory.selectors import nodes_for_viewer, sites_for_viewer


class AssetCostOutput(serializers.ModelSerializer[AssetCost]):
    """A version of what a node costs."""

    node = serializers.CharField(source="node.hostname", read_only=True)
    author = serializers.CharField(source="author.username", read_only=True, default=None)
    capex = MoneyField()
    install = MoneyField()
    spares = MoneyField()
    residual = MoneyField()
    opening_book_value = MoneyField()

    class Meta:
        model = AssetCost
        read_only_fields = fields = [
            "id", "node", "version", "valid_from", "capex", "install", "spares", "residual",
            "opening_book_value", "life_months", "annual_rate", "in_service_at", "retired_at",
            "host_watts", "power_factor", "evidence", "note", "author", "created_at",
        ]  # fmt: skip


def _amount(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(28, 10, min_value=0, **options)


class AssetCostInput(ReasonInput):
    """The first version of a node's cost; amounts are decimal strings."""

    node = VisibleRow(
        nodes_for_viewer, by="hostname", first=~Q(state=Node.State.RETIRED), source="node_id"
    )
    currency = serializers.RegexField(
        r"^[A-Z]{3}\Z",
        error_messages={"invalid": _("Write a currency as three capital letters, like KRW.")},
    )
    capex = _amount()
    install = _amount(required=False)
    spares = _amount(required=False)
    residual = _amount(required=False)
    life_months = serializers.IntegerField(min_value=1, max_value=240)
    annual_rate = serializers.DecimalField(8, 6, min_value=0, max_value=1)
    in_service_at = MomentField()
    host_watts = serializers.DecimalField(12, 3, min_value=0, required=False)
    power_factor = serializers.DecimalField(5, 4, min_value=0, max_value=1, required=False)
    evidence = serializers.ChoiceField(["contract", "list_price", "estimate"], required=False)
    note = serializers.CharField(max_length=300, required=False, allow_blank=True)


class AssetCostRevision(ReasonInput):
    """A change of life or residual from a future moment on."""

    valid_from = MomentField()
    life_months = serializers.IntegerField(min_value=1, max_value=240, required=False)
    residual = _amount(required=False)


class AssetCostFilter(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    node = filters.CharFilter(field_name="node__hostname")

    class Meta:
        model = AssetCost
        fields: list[str] = []


class AssetCostViewSet(Reads):
    """Versions of what nodes cost; never edited."""

    queryset = AssetCost.objects.none()
    serializer_class = AssetCostOutput
    filterset_class = AssetCostFilter
    ordering = ("node__hostname", "-version")
    sort_fields = {"node": "node__hostname", "valid_from": "valid_from", "version": "version"}
    dry_runs = frozenset({"create", "revise"})

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.asset_costs_for_viewer(self.request.user)

    @extend_schema(request=AssetCostInput, responses={201: AssetCostOutput})
    def create(self, request: ApiRequest) -> Response:
        """Record what a node costs."""
        values = self.read(AssetCostInput)
        node, reason = values.pop("node_id"), values.pop("reason")
        row = services.record_asset_cost(
            node_id=node,
            figures=services.AssetFigures(**values),
            actor=request.user,
            reason=reason,
        )
        return _created(AssetCostOutput(row).data, f"/api/v1/asset-costs/{row.pk}")

    @extend_schema(request=AssetCostRevision, responses={201: AssetCostOutput})
    @action(detail=True, methods=["post"])
    def revise(self, request: ApiRequest, pk: str) -> Response:
        """Change life or residual of the row's node for the future."""
        row = self.get_object()
        revised = services.revise_asset_cost(
            node_id=row.node_id, actor=request.user, **self.read(AssetCostRevision)
        )
        return _created(AssetCostOutput(revised).data, f"/api/v1/asset-costs/{revised.pk}")


class SiteCostPeriodOutput(serializers.ModelSerializer[SiteCostPeriod]):
    """PUE and power price of a site in a month."""

    site = serializers.CharField(source="site.slug", read_only=True)
    tariff_per_kwh = MoneyField()

    class Meta:
        model = SiteCostPeriod
        read_only_fields = fields = [
            "id", "site", "month", "pue", "tariff_per_kwh", "source", "created_at",
        ]  # fmt: skip


class SiteCostPeriodInput(OptionalReasonInput):
    """Figures of a site's month, in the ledger's currency."""

    site = VisibleRow(sites_for_viewer, source="site_id")
    month = serializers.DateField()
    pue = serializers.DecimalField(6, 4, min_value=1, max_value=5)
    tariff_per_kwh = serializers.DecimalField(28, 12, min_value=0)
    source = serializers.CharField(max_length=300)  # type: ignore[assignment]  # a field


class SiteCostPeriodFilter(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    site = filters.CharFilter(field_name="site__slug")

    class Meta:
        model = SiteCostPeriod
        fields: list[str] = []


class SiteCostPeriodViewSet(Reads):
    """Figures of sites by month."""

    queryset = SiteCostPeriod.objects.none()
    serializer_class = SiteCostPeriodOutput
    filterset_class = SiteCostPeriodFilter
    ordering = ("site__slug", "-month")
    sort_fields = {"site": "site__slug", "month": "month"}
    dry_runs = frozenset({"create"})

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.site_costs_for_viewer(self.request.user)

    @extend_schema(request=SiteCostPeriodInput, responses={201: SiteCostPeriodOutput})
    def create(self, request: ApiRequest) -> Response:
        """Record the figures of a month."""
        row = services.record_site_cost(actor=request.user, **self.read(SiteCostPeriodInput))
        return _created(SiteCostPeriodOutput(row).data, f"/api/v1/site-cost-periods/{row.pk}")


def _created(data: Any, address: str) -> Response:
    return Response(data, status=201, headers={"Location": address})
