"""The installation itself: versions, beat's last tick, what waits, what is degraded."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import django
from django.conf import settings
from django.db import connection
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.operations import broker, ticks

TICK_STALE_SECONDS = 60


class ObservedSeconds(serializers.Serializer[Any]):
    at = serializers.DateTimeField(allow_null=True)
    age_seconds = serializers.FloatField(allow_null=True)


class QueueOutput(serializers.Serializer[Any]):
    depth = serializers.IntegerField(allow_null=True)


class SystemOutput(serializers.Serializer[Any]):
    installation = serializers.CharField()
    simulated = serializers.BooleanField()
    versions = serializers.DictField(child=serializers.CharField())
    beat = ObservedSeconds()
    queue = QueueOutput()
    degraded = serializers.ListField(child=serializers.CharField())
    as_of = serializers.DateTimeField()


class SystemViewSet(viewsets.GenericViewSet[Any]):
    """One object without an id."""

    view_action = None
    serializer_class = SystemOutput
    pagination_class = None
    filter_backends: list[Any] = []

    @extend_schema(operation_id="system_retrieve", responses=SystemOutput)
    def list(self, request: Request) -> Response:
        """Versions, beat's last tick, queue depth, degraded parts."""
        return Response(SystemOutput(_system()).data)


def _system() -> dict[str, Any]:
    now = timezone.now()
    tick, depth = ticks.last("beat"), broker.queue_depth()
    age = (now - tick).total_seconds() if tick else None
    degraded = []
    if age is None or age > TICK_STALE_SECONDS:
        degraded.append("beat")
    if depth is None:
        degraded.append("broker")
    return {
        "installation": settings.INSTALLATION,
        "simulated": settings.SIMULATED,
        "versions": _versions(),
        "beat": {"at": tick, "age_seconds": age},
        "queue": {"depth": depth},
        "degraded": degraded,
        "as_of": now,
    }


def _versions() -> dict[str, str]:
    major, minor = divmod(connection.pg_version, 10000)  # type: ignore[attr-defined]  # PostgreSQL's
    return {
        "consort": _own_version(),
        "django": django.get_version(),
        "python": platform.python_version(),
        "postgresql": f"{major}.{minor}",
    }


def _own_version() -> str:
    try:
        return version("consort")
    except PackageNotFoundError:
        # A checkout runs without being installed.
        return "checkout"
