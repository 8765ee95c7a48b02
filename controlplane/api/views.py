"""What is no resource: unknown addresses, health."""

from django.core.cache import cache
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from redis.exceptions import RedisError

from controlplane.api import errors, problems
from controlplane.operations import broker


# Nothing changes here, and a write to a wrong address is to hear just that.
@csrf_exempt
def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """A problem document for an address that is none."""
    return problems.plain_response(errors.NotFoundError())


def healthz(request: HttpRequest) -> JsonResponse:
    """The process lives; asks nobody else."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """Whether requests can be served: 503 with the names of what is missing.

    `?exclude=broker` leaves a check out, as often as it is given: a probe that ends or hides every
    web process because the broker is away would turn a delay into an outage.
    """
    checks = {"database": _database, "migrations": _migrations, "broker": _broker, "cache": _cache}
    excluded = set(request.GET.getlist("exclude"))
    failing = [name for name, check in checks.items() if name not in excluded and not check()]
    return JsonResponse(
        {"status": "failing" if failing else "ok", "failing": failing},
        status=503 if failing else 200,
    )


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return False
    return True


def _migrations() -> bool:
    try:
        executor = MigrationExecutor(connection)
        return not executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError:
        return False


def _broker() -> bool:
    return broker.queue_depth() is not None


def _cache() -> bool:
    try:
        cache.get("readyz")
    except (RedisError, OSError):
        return False
    return True
