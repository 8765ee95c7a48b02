"""Counts of one pool and hour from each side, and where routers are."""

import os
from datetime import datetime, timedelta
from pathlib import Path

from django.db.models import Count, F, Q, Sum

from controlplane.metering.models import UsageHour
from controlplane.metering.sources.router import RouterAddress
from controlplane.serving.models import Pool, ProbeRecord, Router
from controlplane.telemetry.models import EngineHour, Evidence

HOUR = timedelta(hours=1)
ANSWERING_ROLES = ("decode", "both")
"""Roles whose engines answer clients; a prefill engine counts prompts a second time."""


def gateway_tokens(*, pool: str, hour: datetime) -> int:
    """All tokens that routers counted, of delivered and of retried attempts; 0 if none."""
    columns = [F(name) for name in [*UsageHour.BUCKETS, *UsageHour.WASTE]]
    total = sum(columns[1:], columns[0])
    counted = UsageHour.objects.filter(pool=pool, hour=hour).aggregate(tokens=Sum(total))
    return int(counted["tokens"] or 0)


def engine_tokens(*, pool: str, hour: datetime) -> int | None:
    """Prompt and output tokens of the engines that answer; None if an engine did not tell."""
    counted = EngineHour.objects.filter(pool=pool, hour=hour, role__in=ANSWERING_ROLES).aggregate(
        engines=Count("pk"),
        silent=Count("pk", filter=Q(prompt_tokens=None) | Q(generation_tokens=None)),
        tokens=Sum(F("prompt_tokens") + F("generation_tokens")),
    )
    if not counted["engines"] or counted["silent"]:
        return None
    return int(counted["tokens"])


def probe_tokens(*, pool: str, hour: datetime) -> int:
    """Tokens of the control plane's own probes of answering engines; 0 if none."""
    counted = ProbeRecord.objects.filter(
        endpoint__pool__slug=pool,
        endpoint__role__in=ANSWERING_ROLES,
        at__gte=hour,
        at__lt=hour + HOUR,
    ).aggregate(tokens=Sum(F("prompt_tokens") + F("completion_tokens")))
    return int(counted["tokens"] or 0)


def active_pool_hours(*, since: datetime) -> list[tuple[str, datetime]]:
    """Pools and hours with usage or engines since a moment, in order."""
    used = UsageHour.objects.filter(hour__gte=since).order_by().values_list("pool", "hour")
    ran = EngineHour.objects.filter(hour__gte=since).order_by().values_list("pool", "hour")
    return sorted({*used.distinct(), *ran.distinct()})


def evidence_of_pool(pool: str) -> str:
    """`simulated` for a pool of simulated engines, else `measured`."""
    engine = Pool.objects.filter(slug=pool).values_list("engine", flat=True).first()
    return Evidence.SIMULATED if engine == Pool.Engine.SIMULATED else Evidence.MEASURED


def router_addresses() -> dict[str, RouterAddress]:
    """Admin ports of the routers in use, with their tokens, by the router's name."""
    return {
        router.name: RouterAddress(admin_url=router.admin_url, token=_token(router.token_reference))
        for router in Router.objects.filter(enabled=True).order_by("name")
    }


def _token(reference: str) -> str:
    """The secret that `file:/path` or `env:NAME` points at; empty if it is not there."""
    kind, _, place = reference.partition(":")
    if kind == "env":
        return os.environ.get(place, "")
    path = Path(place)
    return path.read_text().strip() if kind == "file" and path.is_file() else ""
