"""What viewsets of several apps share: reads, and short ways to take a body and to answer."""

from typing import Any

from rest_framework import mixins, serializers, status, viewsets
from rest_framework.response import Response

from controlplane.common.http import ApiRequest

OBJECT = {"type": "object", "additionalProperties": {}}
LINKS = {"type": "object", "additionalProperties": {"type": "string"}}


class Reads(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]):
    """List and detail; `sort` knows the time of creation unless a subclass names others."""

    request: ApiRequest
    sort_fields = {"created_at": "created_at"}

    def read(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The validated body. Raises ValidationError of Django REST framework."""
        body = serializer(data=self.request.data, context=self.get_serializer_context())
        body.is_valid(raise_exception=True)
        values: dict[str, Any] = body.validated_data
        return values

    def answer(self, row: Any, *, created: bool = False) -> Response:
        """The row as every read gives it, looked up again with what belongs to it."""
        fresh = self.get_queryset().get(pk=row.pk)
        code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
        return Response(self.get_serializer(fresh).data, status=code)
