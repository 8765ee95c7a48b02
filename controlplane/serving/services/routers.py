"""Routers: register, hear, and ask what they serve; `pushing` brings them documents."""

import logging
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import httpx
from django.db import transaction
from django.utils import timezone

from controlplane.audit import services as audit
from controlplane.common import jobs, permissions
from controlplane.serving import outward, traffic
from controlplane.serving.errors import RouterTokenError
from controlplane.serving.models import Pool, Router, RouterPush

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

logger = logging.getLogger(__name__)

TIMEOUT = httpx.Timeout(4.0, connect=1.0)
AT_ONCE = 16
IN_REACH = timedelta(seconds=10)
"""A router heard within this time counts; others get what they missed on their return."""
MAX_STATE_BYTES = 16 * 1024 * 1024

T = TypeVar("T")
State = RouterPush.State


@transaction.atomic
def register_router(
    *, name: str, admin_url: str, public_url: str, token_reference: str, actor: "User | None"
) -> Router:
    """Add a router or change its addresses; documents go to it from the next loop run on.

    Raises NotPermittedError, RouterTokenError or ValidationError.
    """
    if actor is not None:
        permissions.require(actor, "serving.add_router")
    router = Router.objects.filter(name=name).first() or Router(name=name)
    router.admin_url, router.public_url = admin_url.rstrip("/"), public_url.rstrip("/")
    router.token_reference = token_reference
    router.full_clean()
    token_of(router)
    router.save()
    audit.record(
        actor=actor, action="router.register", subject=router, after={"admin_url": admin_url}
    )
    for pool in Pool.objects.filter(state=Pool.State.ACTIVE):
        jobs.after_commit("serving.tasks.reconcile_pool", str(pool.pk))
    return router


@transaction.atomic
def set_router_enabled(
    *, router_id: UUID, enabled: bool, actor: "User", reason: str = ""
) -> Router:
    """Take a router out of use, or back; one out of use is neither asked nor pushed to."""
    router = Router.objects.select_for_update(no_key=True).get(pk=router_id)
    permissions.require(actor, "serving.change_router", router)
    router.enabled = enabled
    router.save(update_fields=["enabled", "updated_at"])
    action = "router.enable" if enabled else "router.disable"
    audit.record(actor=actor, action=action, subject=router, reason=reason)
    return router


def token_of(router: Router) -> str:
    """The router's token from where its reference points. Raises RouterTokenError."""
    kind, _, place = router.token_reference.partition(":")
    try:
        if kind == "file":
            return _token_in(Path(place))
        if kind == "env":
            return os.environ[place]
        detail = "it starts with neither file: nor env:."
    except OSError as error:
        detail = str(error)
    except KeyError:
        detail = "the variable is not set."
    raise RouterTokenError(router=router.name, reference=router.token_reference, detail=detail)


def _token_in(path: Path) -> str:
    found = path.stat()
    # A cluster gives a secret to its pod by a group: the file is root's, read only, mode 0440.
    lent = stat.S_IRGRP if found.st_uid != os.geteuid() else 0
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO) & ~lent:
        raise PermissionError(f"{path} is readable by others; its mode must be 0600.")
    return path.read_text().strip()


def poll_routers() -> int:
    """Ask every router for its state; returns how many answered."""
    routers = list(Router.objects.filter(enabled=True))
    heard = 0
    for router, outcome in zip(routers, at_once(_state_of, routers), strict=True):
        heard += _take_in(router, outcome)
    return heard


def in_reach(routers: Sequence[Router]) -> list[Router]:
    """Routers that were heard lately."""
    oldest = timezone.now() - IN_REACH
    return [router for router in routers if router.heard_at and router.heard_at >= oldest]


def traffic_of(pool: Pool) -> dict[str, Any]:
    """Counts of requests and the histogram of TTFT over the routers in reach, for guards."""
    routers = in_reach(list(Router.objects.filter(enabled=True)))
    pages = at_once(metrics_of, routers)
    return {
        "requests": traffic.failures(router.observed for router in routers),
        "ttft": traffic.added(traffic.ttft_buckets(page, pool.slug) for page in pages),
    }


def version_at(router: Router, pool: Pool) -> int:
    """Version of the pool's document that the router has; 0 for none."""
    return int(router.documents.get(pool.slug, {}).get("version", 0))


def _state_of(router: Router) -> dict[str, Any] | str:
    """The router's state, or the sentence why it was not heard."""
    try:
        token = token_of(router)
        with outward.client(TIMEOUT) as client:
            answer = client.get(
                f"{router.admin_url}/admin/state", headers={"Authorization": f"Bearer {token}"}
            )
        if answer.is_error:
            return f"The router answered {answer.status_code}."
        if len(answer.content) > MAX_STATE_BYTES:
            return "The router's state is too long to be read."
        state: dict[str, Any] = answer.json()
        return state
    except RouterTokenError as error:
        return str(error)
    except (httpx.HTTPError, ValueError) as error:
        return f"{router.admin_url} did not answer: {error!r}."


@transaction.atomic
def _take_in(router: Router, outcome: dict[str, Any] | str) -> bool:
    now = timezone.now()
    router.asked_at = now
    if isinstance(outcome, str):
        router.failure = outcome[:300]
        router.save(update_fields=["asked_at", "failure", "updated_at"])
        return False
    router.failure, router.heard_at = "", now
    router.software_version = str(outcome.get("version", ""))[:64]
    started = outcome.get("started_at")
    router.started_at = datetime.fromtimestamp(started, tz=UTC) if started else None
    router.documents = {
        row["pool"]: {"version": row["version"], "hash": row["hash"], "since": row.get("since")}
        for row in outcome.get("documents", ())
    }
    router.observed = {name: outcome.get(name) for name in ("requests", "usage", "leases_open")} | {
        "pools": _without_pairs(outcome.get("pools") or {})
    }
    router.save(
        update_fields=[
            "asked_at", "heard_at", "failure", "software_version", "started_at", "documents",
            "observed", "updated_at",
        ]
    )  # fmt: skip
    _close_pushes(router, now)
    return True


def _without_pairs(pools: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Snapshots without their pairs, which are many and which contracts say as well."""
    return {
        slug: {name: value for name, value in snapshot.items() if name != "pairs"}
        for slug, snapshot in pools.items()
    }


def _close_pushes(router: Router, now: datetime) -> None:
    """Acknowledge pushes whose answer was lost: the router says that it has the document."""
    for push in router.pushes.filter(state__in=[State.PENDING, State.FAILED]).select_related(
        "document__pool"
    ):
        had = router.documents.get(push.document.pool.slug, {})
        if had.get("version") == push.document.version and had["hash"] == push.document.sha256:
            push.state, push.ended_at, push.detail = State.ACKNOWLEDGED, now, ""
            push.save(update_fields=["state", "ended_at", "detail", "updated_at"])


def metrics_of(router: Router) -> str:
    """The router's metrics page, "" if it did not answer: missing is not a number."""
    try:
        with outward.client(TIMEOUT) as client:
            answer = client.get(f"{router.admin_url}/metrics")
    except httpx.HTTPError:
        return ""
    return answer.text if answer.is_success and len(answer.content) <= MAX_STATE_BYTES else ""


def at_once(call: Callable[[Router], T], routers: Sequence[Router]) -> list[T]:
    """Call several routers at a time; threads do HTTP only, never a query."""
    if not routers:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(routers))) as pool:
        return list(pool.map(call, routers))
