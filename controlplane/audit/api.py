"""The audit log in the API: read only."""

from typing import Any

from django_filters import rest_framework as filters
from rest_framework import mixins, serializers, viewsets

from controlplane.audit import selectors
from controlplane.audit.models import AuditEntry
from controlplane.common.http import ApiRequest


class AuditEntryOutput(serializers.ModelSerializer[AuditEntry]):
    actor = serializers.CharField(source="actor.username", allow_null=True, default=None)
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)

    class Meta:
        model = AuditEntry
        fields = [
            "id", "time", "tenant", "actor", "actor_kind", "auth_method", "source_ip",
            "object_type", "object_id", "object_repr", "action", "result", "reason", "message",
            "before", "after", "request_id", "operation_id",
        ]  # fmt: skip
        read_only_fields = fields


class AuditEntryFilter(filters.FilterSet):
    action = filters.CharFilter()
    result = filters.ChoiceFilter(choices=AuditEntry.Result.choices)
    object_type = filters.CharFilter()
    object_id = filters.CharFilter()
    actor = filters.CharFilter(field_name="actor__username")
    request_id = filters.CharFilter()
    time__gte = filters.IsoDateTimeFilter(field_name="time", lookup_expr="gte")
    time__lt = filters.IsoDateTimeFilter(field_name="time", lookup_expr="lt")

    class Meta:
        model = AuditEntry
        fields: list[str] = []


class AuditEntryViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[AuditEntry]
):
    """Who did what, and what was refused."""

    request: ApiRequest
    queryset = AuditEntry.objects.none()
    serializer_class = AuditEntryOutput
    filterset_class = AuditEntryFilter
    sort_fields = {"time": "time"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.entries_for_viewer(self.request.user)
