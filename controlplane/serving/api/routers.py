"""Routers, the documents they read and the pushes between."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.reads import OBJECT, Reads
from controlplane.common.serializers import StrictSerializer
from controlplane.serving import selectors, services
from controlplane.serving.models import PoolDocument, Router, RouterPush


class RouterOutput(serializers.ModelSerializer[Router]):
    """A router: where it is, and what it said last. Its token is never given out."""

    spec = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField()

    class Meta:
        model = Router
        fields = read_only_fields = ["id", "name", "spec", "status", "created_at", "updated_at"]

    @extend_schema_field(OBJECT)
    def get_spec(self, row: Router) -> dict[str, Any]:
        """Addresses, and whether it is in use."""
        return {
            "admin_url": row.admin_url,
            "public_url": row.public_url,
            "enabled": row.enabled,
        }

    @extend_schema_field(OBJECT)
    def get_status(self, row: Router) -> dict[str, Any]:
        """Heartbeat, versions in service and counts of requests."""
        return {
            "heard_at": row.heard_at,
            "failure": row.failure or None,
            "software_version": row.software_version or None,
            "started_at": row.started_at,
            "documents": row.documents,
            "requests": row.observed.get("requests"),
            "usage": row.observed.get("usage"),
            "leases_open": row.observed.get("leases_open"),
            "observed_at": row.heard_at,
        }


class RouterInput(StrictSerializer):
    """A router to be driven. The token is a reference: file:/path or env:NAME."""

    name = serializers.SlugField(max_length=120)
    admin_url = serializers.URLField(max_length=300)
    public_url = serializers.URLField(max_length=300)
    token_reference = serializers.RegexField(r"^(file:/.+|env:[A-Z][A-Z0-9_]*)$", max_length=300)


class RouterViewSet(Reads):
    """Instances of the data plane."""

    queryset = Router.objects.none()
    serializer_class = RouterOutput
    lookup_slug = "name"
    sort_fields = {"name": "name"}
    dry_runs = frozenset({"create"})

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.routers_for_viewer(self.request.user)

    @extend_schema(request=RouterInput, responses={201: RouterOutput})
    def create(self, request: ApiRequest) -> Response:
        """Register a router, or change the addresses of one of that name."""
        return self.answer(
            services.register_router(actor=request.user, **self.read(RouterInput)), created=True
        )


class PoolDocumentOutput(serializers.ModelSerializer[PoolDocument]):
    """A version of a pool's document. Its content holds hashed keys and goes to routers only."""

    pool = serializers.CharField(source="pool.slug")
    author = serializers.CharField(source="author.username", allow_null=True, default=None)

    class Meta:
        model = PoolDocument
        fields = read_only_fields = [
            "id", "pool", "version", "sha256", "author", "reason", "created_at",
        ]  # fmt: skip


class PoolDocumentFilter(filters.FilterSet):
    pool = filters.CharFilter(field_name="pool__slug")

    class Meta:
        model = PoolDocument
        fields: list[str] = []


class PoolDocumentViewSet(Reads):
    """Immutable versions of what routers read."""

    queryset = PoolDocument.objects.none()
    serializer_class = PoolDocumentOutput
    filterset_class = PoolDocumentFilter
    sort_fields = {"version": "version", "created_at": "created_at"}

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.documents_for_viewer(self.request.user)


class RouterPushOutput(serializers.ModelSerializer[RouterPush]):
    """One document on its way to one router."""

    router = serializers.CharField(source="router.name")
    pool = serializers.CharField(source="document.pool.slug")
    version = serializers.IntegerField(source="document.version")

    class Meta:
        model = RouterPush
        fields = read_only_fields = [
            "id", "router", "pool", "version", "state", "canary", "pointer", "detail", "attempts",
            "sent_at", "ended_at", "created_at",
        ]  # fmt: skip


class RouterPushFilter(filters.FilterSet):
    router = filters.CharFilter(field_name="router__name")
    pool = filters.CharFilter(field_name="document__pool__slug")
    state = filters.ChoiceFilter(choices=RouterPush.State.choices)

    class Meta:
        model = RouterPush
        fields: list[str] = []


class RouterPushViewSet(Reads):
    """Which router got which version, and what it said."""

    queryset = RouterPush.objects.none()
    serializer_class = RouterPushOutput
    filterset_class = RouterPushFilter

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return selectors.pushes_for_viewer(self.request.user)
