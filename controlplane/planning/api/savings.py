"""The savings calculator in the API: stateless arithmetic on what is stated."""

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.response import Response

from controlplane.common import permissions
from controlplane.common.http import ApiRequest
from controlplane.common.serializers import StrictSerializer
from controlplane.planning import savings
from controlplane.planning.models import Scenario

MOST_POINTS = 200


def _decimal(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=20, decimal_places=8, **options)


class PointInput(StrictSerializer):
    """A pool at some load."""

    in_flight = _decimal(min_value=Decimal("0.00000001"))
    ttft_seconds = _decimal(min_value=Decimal(0))


class SavingsInput(StrictSerializer):
    """In flight within the limit, or measured points from which it is read, for both sides."""

    price = _decimal(min_value=Decimal(0), help_text="Of one accelerator-hour.")
    currency = serializers.RegexField("^[A-Z]{3}$", required=False)
    concurrency = _decimal(min_value=Decimal("0.00000001"))
    ttft_limit_seconds = _decimal(min_value=Decimal("0.00000001"))
    pool_accelerators = _decimal(min_value=Decimal("0.00000001"))
    in_flight_before = _decimal(min_value=Decimal("0.00000001"), required=False)
    in_flight_after = _decimal(min_value=Decimal("0.00000001"), required=False)
    points_before = serializers.ListField(
        child=PointInput(), required=False, max_length=MOST_POINTS
    )
    points_after = serializers.ListField(child=PointInput(), required=False, max_length=MOST_POINTS)
    hours = _decimal(min_value=Decimal(0), required=False, default=savings.HOURS_A_YEAR)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Each side has its requests in flight."""
        for side in ("before", "after"):
            points = attrs.pop(f"points_{side}", None)
            name = f"in_flight_{side}"
            found = _within(points or [], attrs["ttft_limit_seconds"])
            if found is not None and name not in attrs:
                attrs |= {name: found.count, f"edge_{side}": found.edge}
            if attrs.get(name) is None:
                message = _("Give {name}, or {points}.").format(name=name, points=f"points_{side}")
                raise serializers.ValidationError({name: [message]})
        return attrs


class MoneyOutput(serializers.Serializer[Any]):
    """An amount as decimal text."""

    amount = serializers.CharField()
    currency = serializers.CharField()


class SavingsOutput(serializers.Serializer[Any]):
    """Negative when the other way needs more; the method is always "modelled"."""

    method = serializers.CharField()
    accelerators_before = serializers.CharField()
    accelerators_after = serializers.CharField()
    accelerator_hours_freed = serializers.CharField()
    bound = serializers.ChoiceField(
        ["exact", "at-least", "at-most", "open"],
        help_text="What hours and value are; the points of a side may end before its limit does.",
    )
    value = MoneyOutput()


class SavingsCalculatorViewSet(viewsets.GenericViewSet[Any]):
    """What another way to serve the same load is worth, by arithmetic on stated figures."""

    request: ApiRequest
    queryset = Scenario.objects.none()
    serializer_class = SavingsOutput
    pagination_class = None
    view_action = "planning.view_scenario"
    computations = frozenset({"create"})

    @extend_schema(request=SavingsInput, responses={200: SavingsOutput})
    def create(self, request: ApiRequest) -> Response:
        """Compute; nothing is stored."""
        permissions.require(request.user, self.view_action)
        body = SavingsInput(data=request.data)
        body.is_valid(raise_exception=True)
        values = dict(body.validated_data)
        currency = values.pop("currency", None) or settings.LEDGER_CURRENCY
        found = savings.compute(savings.Question(**values))
        told = {name: str(value) for name, value in asdict(found).items()}
        amount = told.pop("amount")
        return Response({**told, "value": {"amount": amount, "currency": currency}})


def _within(points: list[dict[str, Decimal]], limit: Decimal) -> savings.InFlight | None:
    return savings.in_flight_within([savings.Point(**point) for point in points], limit)
