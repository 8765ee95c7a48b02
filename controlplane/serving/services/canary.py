"""New settings of a pool are watched on one router before the others get them.

`Pool.canary` says which settings, on which router, since when, and what routers had answered by
then. A look compares that router with itself before and with the others since; numbers that are
missing trip nothing.
"""

from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.operations import outbox
from controlplane.serving import traffic
from controlplane.serving.models import Pool, PoolDocument, Router
from controlplane.serving.services import routers

Verdict = Literal["observe", "passed", "tripped", "gone"]

MOST_FAILED_SHARE = 0.05
LEAST_REQUESTS = 20
TIMES_THE_OTHERS = 2.0
"""More than this many times the share of the other routers, so that what ails all trips nothing."""


def is_held(pool: Pool, settings_sha256: str) -> bool:
    """Whether these settings tripped, so that routers keep the ones before."""
    canary = pool.canary
    is_tripped = canary.get("state") == "tripped" and canary.get("settings") == settings_sha256
    return is_tripped and pool.canary_seconds > 0


def needs_one(pool: Pool, document: PoolDocument, routers_in_use: int) -> bool:
    """Whether the document brings settings that no look has passed yet."""
    if pool.canary_seconds <= 0 or routers_in_use < 2 or not pool.accepted_settings:
        return False
    return document.settings_sha256 != pool.accepted_settings


def accept(pool: Pool, document: PoolDocument) -> None:
    """From now on every router may have the document's settings.

    What tripped stays noted until somebody changes the settings, or it would be published again.
    """
    kept = pool.canary if pool.canary.get("state") == "tripped" else {}
    if (pool.accepted_settings, pool.canary) == (document.settings_sha256, kept):
        return
    pool.accepted_settings, pool.canary = document.settings_sha256, kept
    pool.save(update_fields=["accepted_settings", "canary", "updated_at"])


def begin(pool: Pool, document: PoolDocument, router: Router) -> None:
    """Note that the router has the settings from now on, and what routers answered until now."""
    pool.canary = {
        "state": "observing",
        "settings": document.settings_sha256,
        "version": document.version,
        "router": router.name,
        "since": timezone.now().isoformat(),
        "before": _answers(pool),
    }
    pool.save(update_fields=["canary", "updated_at"])


def is_observed(pool: Pool, document: PoolDocument) -> bool:
    """Whether a router has the document's settings under observation."""
    canary = pool.canary
    is_open = canary.get("state") == "observing"
    return is_open and bool(canary.get("settings") == document.settings_sha256)


def look(pool: Pool) -> Verdict:
    """Compare; a canary that fared worse is noted, with the sentence why.

    One that does not answer is waited for, since the settings may be why; one that was taken out of
    use is gone, and another router takes its place.
    """
    router = Router.objects.filter(name=pool.canary["router"], enabled=True).first()
    if router is None:
        return "gone"
    page = routers.metrics_of(router)
    if not page:
        return "observe"
    if sentence := _worse(pool, router.name, page):
        _trip(pool, sentence)
        return "tripped"
    since = datetime.fromisoformat(pool.canary["since"])
    is_over = (timezone.now() - since).total_seconds() >= pool.canary_seconds
    return "passed" if is_over else "observe"


def _answers(pool: Pool) -> dict[str, dict[str, int]]:
    """What each router in reach has answered since it started."""
    reached = routers.in_reach(list(Router.objects.filter(enabled=True)))
    pages = routers.at_once(routers.metrics_of, reached)
    return {
        router.name: traffic.answers(page, pool.slug)
        for router, page in zip(reached, pages, strict=True)
        if page
    }


def _worse(pool: Pool, name: str, page: str) -> str:
    """The sentence if the router fared worse than it may, else ""."""
    before = pool.canary["before"]
    if name not in before:
        return ""
    requests, share = traffic.failed_share(before[name], traffic.answers(page, pool.slug))
    if requests < LEAST_REQUESTS or share is None or share <= MOST_FAILED_SHARE:
        return ""
    others = _share_of_others(pool, name)
    if others is not None and share <= TIMES_THE_OTHERS * others:
        return ""
    told = "nobody asked them" if others is None else f"{others:.1%}"
    return (
        f"Version {pool.canary['version']} failed or refused {share:.1%} of {requests} requests on "
        f"{name}; the limit is {MOST_FAILED_SHARE:.0%}, and on the other routers it was {told}."
    )


def _share_of_others(pool: Pool, name: str) -> float | None:
    before, after = pool.canary["before"], _answers(pool)
    total = failed = 0
    for other in (before.keys() & after.keys()) - {name}:
        requests, share = traffic.failed_share(before[other], after[other])
        total, failed = total + requests, failed + round(requests * (share or 0.0))
    return failed / total if total else None


@transaction.atomic
def _trip(pool: Pool, sentence: str) -> None:
    row = Pool.objects.select_for_update(no_key=True).get(pk=pool.pk)
    if row.canary != pool.canary:
        return
    kept: dict[str, Any] = {name: row.canary[name] for name in ("settings", "version", "router")}
    row.canary = pool.canary = {**kept, "state": "tripped", "why": sentence}
    row.save(update_fields=["canary", "updated_at"])
    audit.record(actor=None, action="pool.canary-trip", subject=row, reason=sentence[:200])
    outbox.emit("consort.pool.canary-tripped", subject=row, data={"why": sentence})
