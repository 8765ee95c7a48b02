"""`/pools/<name>/adopt`: engines that run in a cluster already become static engines of a pool."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.serializers import OptionalReasonInput, VisibleRow
from controlplane.serving import services
from inventory import selectors as inventory
from inventory.discovery.adoptable import POOL, SERVICE, SLICES


class AdoptInput(OptionalReasonInput):
    """An object as `/clusters/<name>/adoptable` lists it."""

    cluster = VisibleRow(inventory.clusters_for_viewer, source="cluster_id")
    object_kind = serializers.ChoiceField(choices=[POOL, SERVICE, SLICES], source="kind")
    namespace = serializers.CharField(max_length=63)
    name = serializers.CharField(max_length=253)


class AdoptedEngine(serializers.Serializer[Any]):
    """An engine that the pool has now; a change plan gives it a role."""

    workload = serializers.UUIDField(source="pk", read_only=True)
    name = serializers.CharField(read_only=True)
    url = serializers.CharField(source="desired.url", read_only=True)
    accelerator = serializers.UUIDField(source="accelerator_id", read_only=True)


class SkippedEngine(serializers.Serializer[Any]):
    """An address that could not be taken; why is unknown-node, no-accelerator or other-pool."""

    url = serializers.CharField(read_only=True)
    node = serializers.CharField(read_only=True)
    why = serializers.CharField(read_only=True)


class AdoptOutput(serializers.Serializer[Any]):
    """What became of each address."""

    adopted = AdoptedEngine(source="workloads", many=True, read_only=True)
    skipped = SkippedEngine(many=True, read_only=True)


class AdoptAction:
    """The action, for the viewset of pools."""

    @extend_schema(request=AdoptInput, responses=AdoptOutput)
    @action(detail=True, methods=["post"])
    def adopt(self: Any, request: ApiRequest, pk: str) -> Response:
        """Register engines that run already; nothing is written into the cluster."""
        pool = self.get_object()
        body = AdoptInput(data=request.data, context=self.get_serializer_context())
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        found = services.adopt_engines(
            pool_id=pool.pk,
            cluster_id=asked["cluster_id"],
            source=services.EngineSource(asked["kind"], asked["namespace"], asked["name"]),
            actor=request.user,
            reason=asked.get("reason", ""),
        )
        return Response(AdoptOutput(found).data)
