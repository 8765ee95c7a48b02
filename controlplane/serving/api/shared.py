"""What the resources of serving share: reads, and short ways to take a body and to answer."""

from typing import Any

from rest_framework import mixins, serializers, status, viewsets
from rest_framework.response import Response

from controlplane.common.http import ApiRequest

LINKS = {"type": "object", "additionalProperties": {"type": "string"}}
CONDITIONS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "type": {"type": "string"},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": {"type": "string"},
            "message": {"type": "string"},
            "at": {"type": "string", "format": "date-time"},
        },
    },
}
OBJECT = {"type": "object", "additionalProperties": {}}


class Reads(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]):
    """List and detail."""

    request: ApiRequest
    sort_fields = {"created_at": "created_at"}

    def read(self, serializer: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The validated body."""
        body = serializer(data=self.request.data, context=self.get_serializer_context())
        body.is_valid(raise_exception=True)
        values: dict[str, Any] = body.validated_data
        return values

    def answer(self, row: Any, *, created: bool = False) -> Response:
        """The row as every read gives it, looked up again with what belongs to it."""
        fresh = self.get_queryset().get(pk=row.pk)
        code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
        return Response(self.get_serializer(fresh).data, status=code)
