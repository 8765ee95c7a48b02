"""Accelerators: list, read, cordon, uncordon, replace."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, viewsets
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.serializers import ReasonInput
from inventory import selectors, services
from inventory.models import Accelerator
from inventory.models.words import Health


class AcceleratorOutput(serializers.ModelSerializer[Accelerator]):
    """A device: what was meant, and beside it what was last observed."""

    display = serializers.CharField(source="__str__", read_only=True)
    node = serializers.UUIDField(source="node_id", read_only=True)
    hostname = serializers.CharField(source="node.hostname", read_only=True)
    site = serializers.CharField(source="node.cluster.site.slug", read_only=True)
    model = serializers.CharField(source="model.slug", read_only=True)
    health = serializers.ChoiceField(
        source="effective_health", choices=Health.choices, read_only=True
    )
    health_reason = serializers.CharField(source="effective_reason", read_only=True)
    observed = serializers.SerializerMethodField()
    links = serializers.SerializerMethodField()

    class Meta:
        model = Accelerator
        fields = read_only_fields = [
            "id", "display", "node", "hostname", "site", "slot", "serial", "vendor", "model",
            "state", "health", "health_reason", "health_since", "observed_at", "observed",
            "retired_at", "created_at", "updated_at", "links",
        ]  # fmt: skip

    @extend_schema_field({"type": "object"})
    def get_observed(self, device: Accelerator) -> dict[str, Any]:
        """Readings as of `observed_at`; null where the vendor's tool said nothing."""
        return {
            "name": device.observed_name or None,
            "memory_total_mib": device.observed_memory_total_mib,
            "memory_used_mib": device.observed_memory_used_mib,
            "utilisation": device.observed_utilisation,
            "power_watts": device.observed_power_watts,
            "temperature_celsius": device.observed_temperature_celsius,
        }

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
    def get_links(self, device: Accelerator) -> dict[str, str]:
        """Addresses of the device and of its node."""
        return {
            "self": f"/api/v1/accelerators/{device.pk}",
            "node": f"/api/v1/nodes/{device.node_id}",
        }


class ReplaceInput(ReasonInput):
    """Serial of the device that came."""

    serial = serializers.CharField(max_length=128, allow_blank=True)


class AcceleratorFilter(django_filters.FilterSet):
    """Retired devices are shown only if they are asked for."""

    node = django_filters.UUIDFilter(field_name="node_id")
    site = django_filters.CharFilter(field_name="node__cluster__site__slug")
    model = django_filters.CharFilter(field_name="model__slug")
    state = django_filters.ChoiceFilter(choices=Accelerator.State.choices)
    health = django_filters.ChoiceFilter(field_name="effective_health", choices=Health.choices)

    class Meta:
        model = Accelerator
        fields = ["vendor", "serial"]

    def filter_queryset(self, queryset: "QuerySet[Accelerator]") -> "QuerySet[Accelerator]":
        """Rows that pass every filter."""
        rows: QuerySet[Accelerator] = super().filter_queryset(queryset)
        if self.form.cleaned_data.get("state"):
            return rows
        return rows.exclude(state=Accelerator.State.RETIRED)


class AcceleratorViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Accelerator]
):
    """Devices in the slots of nodes."""

    request: ApiRequest
    serializer_class = AcceleratorOutput
    filterset_class = AcceleratorFilter
    ordering = ("node__hostname", "slot")
    sort_fields = {"hostname": "node__hostname", "slot": "slot", "created_at": "created_at"}

    def get_queryset(self) -> "QuerySet[Accelerator]":
        """Devices that the caller may see."""
        return selectors.accelerators_for_viewer(self.request.user)

    @extend_schema(request=ReasonInput, responses=AcceleratorOutput)
    @action(detail=True, methods=["post"])
    def cordon(self, request: ApiRequest, pk: str) -> Response:
        """Stop new placements on the device."""
        return self._decide(services.cordon_accelerator, ReasonInput)

    @extend_schema(request=ReasonInput, responses=AcceleratorOutput)
    @action(detail=True, methods=["post"])
    def uncordon(self, request: ApiRequest, pk: str) -> Response:
        """Let placements come back to the device."""
        return self._decide(services.uncordon_accelerator, ReasonInput)

    @extend_schema(request=ReplaceInput, responses=AcceleratorOutput)
    @action(detail=True, methods=["post"])
    def replace(self, request: ApiRequest, pk: str) -> Response:
        """Retire the device and put another one into its slot; answers with the one that came."""
        return self._decide(services.replace_accelerator, ReplaceInput)

    def _decide(self, service: Any, form: type[ReasonInput]) -> Response:
        device, body = self.get_object(), form(data=self.request.data)
        body.is_valid(raise_exception=True)
        result = service(accelerator_id=device.pk, actor=self.request.user, **body.validated_data)
        return Response(AcceleratorOutput(self.get_queryset().get(pk=result.pk)).data)
