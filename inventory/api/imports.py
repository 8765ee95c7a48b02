"""Imports: a CSV file in, every row's verdict out."""

from collections.abc import Mapping
from typing import IO, Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.parsers import BaseParser
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from inventory import selectors, services
from inventory.discovery.file_import import MOST_BYTES
from inventory.errors import ImportRefusedError, ImportTooLargeError
from inventory.models import ImportRun

_BYTES = "latin-1"
"""One character per byte, so that the body can be carried as text and given back as it came."""


class CsvParser(BaseParser):
    """`text/csv`, at most 32 MiB."""

    media_type = "text/csv"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        """The file under `content`. Raises ImportTooLargeError."""
        content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ImportTooLargeError(size=f"> {MOST_BYTES}", limit_bytes=MOST_BYTES)
        return {"content": content.decode(_BYTES)}


class ImportOutput(serializers.ModelSerializer[ImportRun]):
    """A file that was read, with what it makes or why it was refused."""

    display = serializers.CharField(source="__str__", read_only=True)
    created_by = serializers.CharField(
        source="created_by.username", read_only=True, allow_null=True, default=None
    )
    created = serializers.DictField(child=serializers.IntegerField(), read_only=True)

    class Meta:
        model = ImportRun
        fields = read_only_fields = [
            "id", "display", "file_name", "sha256", "state", "dry_run", "rows", "created",
            "errors", "error_count", "created_by", "created_at",
        ]  # fmt: skip


class ImportViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[ImportRun]
):
    """Files of nodes. `?dry_run=true` answers with every row's verdict and changes nothing."""

    request: ApiRequest
    serializer_class = ImportOutput
    query_parameters = ("file_name",)
    ordering = ("-created_at",)
    sort_fields = {"created_at": "created_at"}
    heavy_actions = frozenset({"create"})
    dry_runs = frozenset({"create"})

    def get_parsers(self) -> list[BaseParser]:
        """CSV only, for the one verb that has a body."""
        return [CsvParser()]

    def get_queryset(self) -> "QuerySet[ImportRun]":
        """Runs that the caller may see."""
        return selectors.imports_for_viewer(self.request.user)

    @extend_schema(
        request={"text/csv": str},
        responses={200: ImportOutput, 201: ImportOutput},
        parameters=[
            OpenApiParameter("dry_run", bool, description="true checks and stores nothing."),
            OpenApiParameter("file_name", str, description="Name to show in the list."),
        ],
    )
    def create(self, request: ApiRequest) -> Response:
        """Check the file and, unless it is a dry run, store all of it or nothing."""
        dry_run = request.query_params.get("dry_run") == "true"
        run = services.import_file(
            content=_bytes_of(request.data),
            file_name=request.query_params.get("file_name", ""),
            dry_run=dry_run,
            actor=request.user,
        )
        if run.state == ImportRun.State.REFUSED and not dry_run:
            raise ImportRefusedError(count=run.error_count, errors=run.errors)
        return Response(ImportOutput(run).data, status=200 if dry_run else 201)


def _bytes_of(body: Any) -> bytes:
    return str(body["content"]).encode(_BYTES) if body else b""
