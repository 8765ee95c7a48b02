"""Tokens of the same hour that earlier runs of the demo left behind.

A run answers for its own tokens only. Engines of earlier runs are gone, so what was scraped of them
is all there will be; routers may still hold segments that nobody fetched before the last stop.
"""

from datetime import datetime

from django.db.models import F, Sum

from controlplane.metering import services as metering
from controlplane.metering.models import Reconciliation
from controlplane.telemetry import services as telemetry


def engine_tokens(pool: str, hour: datetime) -> dict[str, int]:
    """Tokens of the `engines` without probes, and of `probes` with routers' first prompts.

    Call it before any engine of this run starts.
    """
    telemetry.recompute_hour(hour=hour)
    metering.reconcile_recent()
    rows = Reconciliation.objects.filter(pool=pool, hour__gte=hour, engine_tokens__isnull=False)
    sums = rows.aggregate(
        engines=Sum(F("engine_tokens") - F("probe_tokens")), probes=Sum("probe_tokens")
    )
    return {name: value or 0 for name, value in sums.items()}


def router_tokens(pool: str, hour: datetime) -> int:
    """Tokens of clients at the routers.

    Call it while they run and before this run's first request of a client; first prompts that
    routers sent to this run's engines do not belong to it.
    """
    metering.pull_routers()
    metering.recompute_stale_hours()
    metering.reconcile_recent()
    rows = Reconciliation.objects.filter(pool=pool, hour__gte=hour)
    return rows.aggregate(sum=Sum("gateway_tokens"))["sum"] or 0
