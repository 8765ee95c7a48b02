"""Hours of the ledger."""

from typing import Any

from django.db.models import Prefetch
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema_field
from rest_framework import mixins, serializers, viewsets

from controlplane.common.http import ApiRequest
from controlplane.finance import selectors
from controlplane.finance.models import ClassHour, LedgerHour
from controlplane.finance.serializers import MoneyField, money


class ClassOutput(serializers.Serializer[Any]):
    """A part of an hour."""

    cost_class = serializers.CharField()
    pool = serializers.CharField()
    role = serializers.CharField()
    accelerator_seconds = serializers.IntegerField()
    amount = serializers.DictField(child=serializers.CharField())


class LedgerHourOutput(serializers.ModelSerializer[LedgerHour]):
    """What a node cost in an hour, by component, and where it went."""

    node = serializers.CharField(source="node.hostname", read_only=True)
    depreciation = MoneyField()
    finance = MoneyField()
    power = MoneyField()
    write_off = MoneyField()
    total = MoneyField()
    tariff_per_kwh = MoneyField()
    classes = serializers.SerializerMethodField()

    class Meta:
        model = LedgerHour
        read_only_fields = fields = [
            "id", "node", "hour", "seconds", "depreciation", "finance", "power", "write_off",
            "total", "kilowatts", "power_source", "pue", "tariff_per_kwh", "asset_cost",
            "state_unknown", "source", "classes", "updated_at",
        ]  # fmt: skip

    @extend_schema_field(ClassOutput(many=True))
    def get_classes(self, row: LedgerHour) -> list[dict[str, Any]]:
        """The classes sum to the total exactly."""
        return [
            {
                "cost_class": part.cost_class,
                "pool": part.pool,
                "role": part.role,
                "accelerator_seconds": part.accelerator_seconds,
                "amount": money(part.amount, row.currency),
            }
            for part in row.classes.all()
        ]


class LedgerHourFilter(filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    node = filters.CharFilter(field_name="node__hostname")
    hour__gte = filters.IsoDateTimeFilter(field_name="hour", lookup_expr="gte")
    hour__lt = filters.IsoDateTimeFilter(field_name="hour", lookup_expr="lt")
    source = filters.CharFilter()

    class Meta:
        model = LedgerHour
        fields: list[str] = []


class LedgerHourViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[LedgerHour]
):
    """Hours of the ledger, also of nodes that did nothing."""

    request: ApiRequest
    queryset = LedgerHour.objects.none()
    serializer_class = LedgerHourOutput
    filterset_class = LedgerHourFilter
    view_action = "finance.view_ledger"
    sort_fields = {"hour": "hour", "node": "node__hostname", "total": "total"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        parts = ClassHour.objects.order_by("cost_class", "pool", "role")
        rows = selectors.ledger_for_viewer(self.request.user)
        return rows.prefetch_related(Prefetch("classes", parts))
