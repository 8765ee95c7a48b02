"""Register what is scraped and when it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone

from controlplane.telemetry.models import Evidence, ScrapeTarget

if TYPE_CHECKING:
    from inventory.models import Accelerator, Node


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTarget:
    """One instance of an endpoint and where its metrics page is."""

    endpoint: str
    """Id of the endpoint as in the pool document."""
    instance: str
    """As in the pool document; another start of the process is another instance."""
    metrics_url: str
    """In full, for example http://127.0.0.1:9000/metrics."""
    engine: str
    """Slug of the engine plugin, for example vllm (simulated engines speak it too)."""
    node: "Node"
    accelerators: "Sequence[Accelerator]"
    pool: str
    """Slug of the pool."""
    role: str
    source: str = Evidence.MEASURED
    """`simulated` for simulated engines."""
    counts_from_start: bool = True
    """False for an engine that ran before: what it had counted at the first scrape is not ours."""


@transaction.atomic
def register_engine(target: EngineTarget) -> ScrapeTarget:
    """Start to scrape one instance of an endpoint; a second call brings its row up to date.

    Earlier instances of the endpoint end here. One that had ended is scraped again.
    """
    ScrapeTarget.objects.filter(endpoint=target.endpoint, active=True).exclude(
        instance=target.instance
    ).update(active=False, ended_at=timezone.now())
    row, _ = ScrapeTarget.objects.update_or_create(
        kind=ScrapeTarget.Kind.ENGINE,
        endpoint=target.endpoint,
        instance=target.instance,
        defaults={
            "url": target.metrics_url,
            "engine": target.engine,
            "node": target.node,
            "pool": target.pool,
            "role": target.role,
            "source": target.source,
            "counts_from_start": target.counts_from_start,
            "active": True,
            "ended_at": None,
        },
    )
    row.accelerators.set(target.accelerators)
    return row


def end_engine(*, instance: str, at: datetime | None = None) -> int:
    """Stop to scrape an instance whose process is gone; returns how many rows ended (0 or 1)."""
    return ScrapeTarget.objects.filter(instance=instance, active=True).update(
        active=False, ended_at=at or timezone.now()
    )
