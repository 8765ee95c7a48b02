"""Counts of one pool and hour from each side, and where routers are."""

import os
from datetime import datetime, timedelta
from pathlib import Path

from django.db.models import Count, F, Q, QuerySet, Sum

from controlplane.metering.models import UsageHour
from controlplane.metering.sources.router import RouterAddress
from controlplane.serving.models import Pool, ProbeRecord, Router
from controlplane.telemetry.models import EngineHour, Evidence
from routing.core.usage import OWN_TENANT, WARM_UP_KEY

HOUR = timedelta(hours=1)
ANSWERING_ROLES = ("decode", "both")
"""Roles whose engines answer clients; a prefill engine counts prompts a second time."""
ROUTERS_OWN = Q(tenant=OWN_TENANT, key=WARM_UP_KEY)
"""Events and hours of prompts that routers sent of themselves."""


def gateway_tokens(*, pool: str, hour: datetime) -> int:
    """All tokens that clients' requests used at routers, also of retried attempts; 0 if none."""
    return _tokens(UsageHour.objects.filter(~ROUTERS_OWN, pool=pool, hour=hour))


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
    """Tokens at answering engines that no client asked for; 0 if none.

    They are the control plane's own probes and the first prompts that routers send to fresh decode
    endpoints.
    """
    warm_ups = UsageHour.objects.filter(ROUTERS_OWN, pool=pool, hour=hour, role__in=ANSWERING_ROLES)
    counted = ProbeRecord.objects.filter(
        endpoint__pool__slug=pool,
        endpoint__role__in=ANSWERING_ROLES,
        at__gte=hour,
        at__lt=hour + HOUR,
    ).aggregate(tokens=Sum(F("prompt_tokens") + F("completion_tokens")))
    return int(counted["tokens"] or 0) + _tokens(warm_ups)


def _tokens(hours: QuerySet[UsageHour]) -> int:
    """All tokens of attempts, whether their answer reached a client or not."""
    columns = [F(name) for name in [*UsageHour.BUCKETS, *UsageHour.WASTE]]
    return int(hours.aggregate(tokens=Sum(sum(columns[1:], columns[0])))["tokens"] or 0)


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
