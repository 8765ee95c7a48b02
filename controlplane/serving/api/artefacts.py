"""Files of models, and the nodes on which they are."""

from typing import Any

from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.common.reads import Reads
from controlplane.common.serializers import OptionalReasonInput, ReasonInput, StrictSerializer
from controlplane.serving import services
from controlplane.serving.models import ArtefactPresence, Model, ModelArtefact
from controlplane.serving.selectors.files import artefacts_for_viewer, presences_for_viewer


class ArtefactOutput(serializers.ModelSerializer[ModelArtefact]):
    """Files of a model; null or empty is unknown."""

    model = serializers.CharField(source="model.slug")
    pools: "serializers.ManyRelatedField" = serializers.SlugRelatedField(  # type: ignore[assignment]  # many=True makes another class
        many=True, read_only=True, slug_field="slug"
    )

    class Meta:
        model = ModelArtefact
        fields = read_only_fields = [
            "id", "slug", "model", "kind", "uri", "endpoint", "node_folder", "revision", "sha256",
            "size_bytes", "licence", "gated", "state", "pools", "created_at", "updated_at",
        ]  # fmt: skip


class ArtefactDetails(StrictSerializer):
    """Where the files are, and what is known of them."""

    uri = serializers.CharField(
        max_length=500, required=False,
        help_text="Claim, absolute folder, image reference, or s3://bucket/prefix.",
    )  # fmt: skip
    endpoint = serializers.CharField(
        max_length=300, required=False, allow_blank=True, help_text="Of an object store only."
    )
    node_folder = serializers.CharField(
        max_length=500, required=False, allow_blank=True,
        help_text="Folder on each node to which an object store's files are copied.",
    )  # fmt: skip
    revision = serializers.CharField(max_length=120, required=False, allow_blank=True)
    sha256 = serializers.RegexField(
        r"^([0-9a-f]{64})?$", required=False, allow_blank=True,
        help_text="Of the list of files, as `sha256sum` counts it; empty: not stated.",
    )  # fmt: skip
    size_bytes = serializers.IntegerField(
        min_value=1, max_value=2**60, required=False, allow_null=True
    )
    licence = serializers.CharField(max_length=120, required=False, allow_blank=True)
    gated = serializers.BooleanField(required=False, allow_null=True)


class ArtefactInput(ArtefactDetails, OptionalReasonInput):
    """Files to be added."""

    slug = serializers.SlugField(max_length=120)
    model = serializers.SlugRelatedField(slug_field="slug", queryset=Model.objects.all())
    kind = serializers.ChoiceField(choices=ModelArtefact.Kind.choices)
    uri = serializers.CharField(max_length=500)


class ArtefactChange(ArtefactDetails, ReasonInput):
    """What may be changed, with the reason."""


class ArtefactFilter(filters.FilterSet):
    """By model and kind."""

    model = filters.CharFilter(field_name="model__slug")
    kind = filters.ChoiceFilter(choices=ModelArtefact.Kind.choices)
    state = filters.ChoiceFilter(choices=ModelArtefact.State.choices)

    class Meta:
        model = ModelArtefact
        fields: list[str] = []


class ArtefactViewSet(Reads):
    """Files of models: source, revision, checksum, size and licence."""

    queryset = ModelArtefact.objects.none()
    serializer_class = ArtefactOutput
    filterset_class = ArtefactFilter
    sort_fields = {"slug": "slug"}
    dry_runs = frozenset({"create"})

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return artefacts_for_viewer(self.request.user).prefetch_related("pools")

    @extend_schema(request=ArtefactInput, responses={201: ArtefactOutput})
    def create(self, request: ApiRequest) -> Response:
        """Add files of a model."""
        values = self.read(ArtefactInput)
        return self.answer(services.create_artefact(actor=request.user, **values), created=True)

    @extend_schema(request=ArtefactChange, responses=ArtefactOutput)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Change where the files are, or what is known of them."""
        row = self.get_object()
        values = self.read(ArtefactChange)
        return self.answer(
            services.change_artefact(artefact_id=row.pk, actor=request.user, **values)
        )

    @extend_schema(request=ReasonInput, responses=ArtefactOutput)
    @action(detail=True, methods=["post"])
    def retire(self, request: ApiRequest, pk: str) -> Response:
        """Take the files off the list."""
        row = self.get_object()
        values = self.read(ReasonInput)
        return self.answer(
            services.retire_artefact(artefact_id=row.pk, actor=request.user, **values)
        )


class PresenceOutput(serializers.ModelSerializer[ArtefactPresence]):
    """What was seen of files on a node."""

    artefact = serializers.CharField(source="artefact.slug")
    node = serializers.CharField(source="node.hostname")

    class Meta:
        model = ArtefactPresence
        fields = read_only_fields = [
            "id", "artefact", "node", "node_id", "state", "size_bytes", "sha256",
            "read_bytes_per_second", "detail", "checked_at", "created_at", "updated_at",
        ]  # fmt: skip


class PresenceFilter(filters.FilterSet):
    """By artefact, node and state."""

    artefact = filters.CharFilter(field_name="artefact__slug")
    node = filters.UUIDFilter(field_name="node")
    state = filters.ChoiceFilter(choices=ArtefactPresence.State.choices)

    class Meta:
        model = ArtefactPresence
        fields: list[str] = []


class PresenceViewSet(Reads):
    """On which nodes files of models were seen, and whether they are the stated ones."""

    queryset = ArtefactPresence.objects.none()
    serializer_class = PresenceOutput
    filterset_class = PresenceFilter
    view_action = "serving.view_modelartefact"

    def get_queryset(self) -> Any:
        """What the caller may see."""
        return presences_for_viewer(self.request.user)
