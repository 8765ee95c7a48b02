"""Pools with what runs in them, how well, and what routers know of it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Prefetch, Q, QuerySet, Sum

from controlplane.common import permissions
from controlplane.metering import digest
from controlplane.metering.models import UsageEventRow, UsageHour
from controlplane.serving.models import (
    Endpoint,
    Pool,
    PoolDocument,
    Router,
    RouterPush,
    Workload,
)
from controlplane.tenancy.models import User


@dataclass(slots=True)
class Service:
    """How a pool served in a period, from hours of usage; None is no data."""

    requests: int = 0
    failed: int = 0
    ttft_p50: float | None = None
    ttft_p95: float | None = None
    tpot_p95: float | None = None
    hit_rate: float | None = None
    """Share of prompt tokens that came from a prefix cache."""
    output_tokens: int = 0
    until: datetime | None = None


@dataclass(slots=True)
class PoolRow:
    """A pool in the list."""

    pool: Pool
    ready: Counter[str] = field(default_factory=Counter)
    wanted: Counter[str] = field(default_factory=Counter)
    service: Service = field(default_factory=Service)
    version: int | None = None
    acknowledged: int = 0
    routers: int = 0

    @property
    def roles(self) -> list[tuple[str, int, int]]:
        """Role, ready and wanted endpoints, in the order prefill, decode, both."""
        return [
            (role, self.ready[role], self.wanted[role])
            for role in ("prefill", "decode", "both")
            if self.ready[role] or self.wanted[role]
        ]

    @property
    def ready_total(self) -> int:
        """Endpoints that take requests."""
        return sum(self.ready.values())

    @property
    def wanted_total(self) -> int:
        """Engines that should run."""
        return sum(self.wanted.values())

    @property
    def slo(self) -> str:
        """met, missed or no_data; a target without a number to compare is no data."""
        verdicts = [
            None if value is None else value <= target
            for value, target in (
                (self.service.ttft_p95, self.pool.slo_ttft_p95_seconds),
                (self.service.tpot_p95, self.pool.slo_tpot_p95_seconds),
            )
            if target is not None
        ]
        if False in verdicts:
            return "missed"
        return "met" if True in verdicts else "no_data"


def pools_for(user: User) -> QuerySet[Pool]:
    """Pools that the person may see, with their models."""
    rows = Pool.objects.select_related("model")
    return permissions.restrict(rows, user, "serving.view_pool")


def pool_rows(pools: Iterable[Pool]) -> list[PoolRow]:
    """Rows for the pools, failed objectives first; six queries for all of them."""
    rows = {pool.pk: PoolRow(pool) for pool in pools}
    _add_endpoints(rows)
    _add_documents(rows)
    services = service_of([row.pool.slug for row in rows.values()])
    for row in rows.values():
        row.service = services.get(row.pool.slug, Service())
    order = {"missed": 0, "no_data": 1, "met": 2}
    return sorted(rows.values(), key=lambda row: (order[row.slo], row.pool.slug))


def _add_endpoints(rows: Mapping[UUID, PoolRow]) -> None:
    ready = Endpoint.objects.filter(pool__in=rows, state=Endpoint.State.READY).order_by()
    for pool, role, count in ready.values_list("pool_id", "role").annotate(count=Count("pk")):
        rows[pool].ready[role] = count
    wanted = Workload.objects.filter(pool__in=rows, desired_state="running").order_by()
    for pool, role, count in wanted.values_list("pool_id", "role").annotate(count=Count("pk")):
        rows[pool].wanted[role] = count


def _add_documents(rows: Mapping[UUID, PoolRow]) -> None:
    routers = Router.objects.filter(enabled=True).count()
    newest = PoolDocument.objects.filter(pool__in=rows).order_by()
    for pool, version in newest.values_list("pool_id").annotate(version=Max("version")):
        rows[pool].version = version
    wanted = Q(pk__in=[])
    for pool, row in rows.items():
        row.routers = routers
        if row.version is not None:
            wanted |= Q(document__pool=pool, document__version=row.version)
    pushes = RouterPush.objects.filter(
        wanted, state=RouterPush.State.ACKNOWLEDGED, router__enabled=True
    ).order_by()
    for pool, count in pushes.values_list("document__pool_id").annotate(count=Count("pk")):
        rows[pool].acknowledged = count


def service_of(pools: Sequence[str]) -> dict[str, Service]:
    """Service per pool slug in its newest hour with requests, two hours old at most; one query."""
    since = _this_hour() - timedelta(hours=2)
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    columns = (
        "pool", "hour", "requests", "requests_failed", "ttft_digest", "tpot_digest", "cache_read",
        "input_uncached", "output", "last_response_at",
    )  # fmt: skip
    for row in UsageHour.objects.filter(pool__in=pools, hour__gte=since).values(*columns):
        found[row["pool"]].append(row)
    newest = {pool: max(row["hour"] for row in rows) for pool, rows in found.items()}
    return {
        pool: _service([row for row in rows if row["hour"] == newest[pool]])
        for pool, rows in found.items()
    }


def _service(rows: Sequence[Mapping[str, Any]]) -> Service:
    ttft = digest.merge(row["ttft_digest"] for row in rows)
    tpot = digest.merge(row["tpot_digest"] for row in rows)
    read = sum(row["cache_read"] for row in rows)
    prompt = read + sum(row["input_uncached"] for row in rows)
    return Service(
        requests=sum(row["requests"] for row in rows),
        failed=sum(row["requests_failed"] for row in rows),
        ttft_p50=digest.quantile(ttft, 0.5),
        ttft_p95=digest.quantile(ttft, 0.95),
        tpot_p95=digest.quantile(tpot, 0.95),
        hit_rate=read / prompt if prompt else None,
        output_tokens=sum(row["output"] for row in rows),
        until=max((row["last_response_at"] for row in rows), default=None),
    )


def ttft_by_hour(pool: str, *, hours: int = 24) -> list[tuple[datetime, float | None]]:
    """TTFT p95 of each of the last hours, oldest first; None where there was no request."""
    start = _this_hour() - timedelta(hours=hours - 1)
    found: dict[datetime, list[Mapping[str, int]]] = defaultdict(list)
    rows = UsageHour.objects.filter(pool=pool, hour__gte=start).values_list("hour", "ttft_digest")
    for hour, ttft in rows:
        found[hour].append(ttft)
    moments = [start + timedelta(hours=number) for number in range(hours)]
    return [
        (moment, digest.quantile(digest.merge(found[moment]), 0.95) if moment in found else None)
        for moment in moments
    ]


def requests_since(start: datetime, *, pool: str | None = None) -> tuple[int, int]:
    """Requests and failed ones in the hours from a time on."""
    rows = UsageHour.objects.filter(hour__gte=start.replace(minute=0, second=0, microsecond=0))
    if pool:
        rows = rows.filter(pool=pool)
    sums = rows.aggregate(requests=Sum("requests"), failed=Sum("requests_failed"))
    return sums["requests"] or 0, sums["failed"] or 0


def requests_recorded() -> tuple[int, int]:
    """Requests and failed ones among all events that routers recorded and metering keeps."""
    answered = Q(delivered=True) | Q(outcome="refused")
    counts = UsageEventRow.objects.filter(answered).aggregate(
        requests=Count("pk"), failed=Count("pk", filter=~Q(outcome="ok"))
    )
    return counts["requests"], counts["failed"]


def endpoints_of(pool: Pool) -> list[Endpoint]:
    """Live endpoints of a pool with node and accelerator: prefill, decode, both."""
    rows = Endpoint.objects.live().filter(pool=pool)
    order = ["prefill", "decode", "both"]
    return sorted(
        rows.select_related("node__node_type__accelerator_model", "workload__accelerator"),
        key=lambda row: (
            order.index(row.role), row.node.hostname, row.workload.accelerator.slot,
        ),
    )  # fmt: skip


def documents_of(pool: Pool, *, limit: int = 10) -> list[PoolDocument]:
    """Newest versions of a pool's document with authors and pushes."""
    rows = pool.documents.defer("content").select_related("author")
    pushes = RouterPush.objects.select_related("router").order_by("router__name")
    rows = rows.prefetch_related(Prefetch("pushes", queryset=pushes))
    return list(rows.order_by("-version")[:limit])


def _this_hour() -> datetime:
    return datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


def newest_version(pool: Pool) -> int | None:
    """Version of the pool's newest document."""
    version: int | None = pool.documents.order_by().aggregate(version=Max("version"))["version"]
    return version


def newest_pushes(user: User, *, limit: int = 20) -> list[RouterPush]:
    """The newest pushes of documents to routers."""
    rows = RouterPush.objects.select_related("router", "document__pool").order_by("-created_at")
    rows = rows.defer("document__content")
    return list(permissions.restrict(rows, user, "serving.view_routerpush")[:limit])


def newest_versions(user: User) -> dict[str, int]:
    """Newest document version of each pool that has one, by slug."""
    rows = PoolDocument.objects.filter(pool__in=pools_for(user).values("pk")).order_by()
    return dict(rows.values_list("pool__slug").annotate(version=Max("version")))
