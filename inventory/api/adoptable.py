"""Engines that run in a cluster already, as its discovery saw them last; reading only."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from inventory.models import Discovery


class AdoptableEndpointOutput(serializers.Serializer[Any]):
    """One address of an engine."""

    url = serializers.CharField(read_only=True)
    node = serializers.CharField(read_only=True)
    pod = serializers.CharField(read_only=True)
    ready = serializers.BooleanField(read_only=True, allow_null=True)
    role = serializers.CharField(read_only=True)


class AdoptableItem(serializers.Serializer[Any]):
    """An object that speaks of engines: InferencePool, LLMInferenceService or EndpointSlice."""

    kind = serializers.CharField(read_only=True)
    api_version = serializers.CharField(read_only=True)
    namespace = serializers.CharField(read_only=True)
    name = serializers.CharField(read_only=True)
    model = serializers.CharField(read_only=True)
    picker = serializers.CharField(read_only=True)
    note = serializers.CharField(read_only=True)
    endpoints = AdoptableEndpointOutput(many=True, read_only=True)


class AdoptableOutput(serializers.Serializer[Any]):
    """What was found, and when; `as_of` is null as long as the cluster was never listed."""

    cluster = serializers.CharField(read_only=True)
    as_of = serializers.DateTimeField(read_only=True, allow_null=True)
    error = serializers.CharField(read_only=True)
    items = AdoptableItem(many=True, read_only=True)


class AdoptableAction:
    """`/clusters/<name>/adoptable`, for the viewset of clusters."""

    @extend_schema(responses=AdoptableOutput)
    @action(detail=True, methods=["get"])
    def adoptable(self: Any, request: ApiRequest, pk: str) -> Response:
        """Engines that run there already, by namespace, kind and name, as they were last seen."""
        row = self.get_object()
        found = {
            "cluster": row.slug,
            "as_of": None,
            "error": "",
            "items": [],
        }
        discovery = Discovery.objects.filter(cluster=row).first()
        if discovery is not None:
            found |= {
                "as_of": discovery.listed_at,
                "error": discovery.error,
                "items": discovery.adoptable,
            }
        return Response(AdoptableOutput(found).data)
