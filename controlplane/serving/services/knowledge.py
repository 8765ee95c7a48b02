"""Forget what routers and engines learned about a pool, for a fair comparison of policies."""

from typing import TYPE_CHECKING
from uuid import UUID

import httpx
from django.db import transaction

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.operations import services as operations
from controlplane.operations.models import Operation
from controlplane.serving import outward
from controlplane.serving.models import Endpoint, Pool, Router
from controlplane.serving.services.routers import token_of

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

TIMEOUT = httpx.Timeout(5.0, connect=1.0)
ENGINES_STEP, ROUTERS_STEP = "empty prefix caches", "reset routers"


class ResetRefusedError(Exception):
    """An engine or a router did not do it; the message names which."""


@transaction.atomic
def reset_pool_knowledge(*, pool_id: UUID, actor: "User", reason: str = "") -> Operation:
    """Start to empty the engines' prefix caches and the routers' knowledge of a pool."""
    pool = Pool.objects.get(pk=pool_id)
    permissions.require(actor, "serving.change_pool", pool)
    audit.record(actor=actor, action="pool.reset-knowledge", subject=pool, reason=reason)
    return operations.start(
        kind="serving.reset-knowledge",
        subject=pool,
        task="serving.tasks.reset_knowledge",
        actor=actor,
        steps=[ENGINES_STEP, ROUTERS_STEP],
    )


def run_knowledge_reset(*, operation_id: UUID) -> None:
    """Do it; running it again empties again, which changes nothing."""
    operation = operations.claim(operation_id)
    if operation is None:
        return
    pool = Pool.objects.get(pk=operation.subject_id)
    try:
        with operations.step(operation, ENGINES_STEP) as step:
            step.detail = f"{_empty_engines(pool)} engines"
        with operations.step(operation, ROUTERS_STEP) as step:
            step.detail = f"{_reset_routers(pool)} routers"
    except (ResetRefusedError, httpx.HTTPError) as error:
        operations.fail(operation, error)
        return
    operations.succeed(operation, result={"pool": pool.slug})


def _empty_engines(pool: Pool) -> int:
    endpoints = Endpoint.objects.filter(
        pool=pool, state__in=[Endpoint.State.READY, Endpoint.State.DRAINING]
    ).order_by("workload__name")
    with outward.client(TIMEOUT) as client:
        for endpoint in endpoints:
            answer = client.post(f"{endpoint.url}/reset_prefix_cache")
            if answer.is_error:
                raise ResetRefusedError(
                    f"{endpoint.url}/reset_prefix_cache answered {answer.status_code}."
                )
    return len(endpoints)


def _reset_routers(pool: Pool) -> int:
    routers = list(Router.objects.filter(enabled=True))
    with outward.client(TIMEOUT) as client:
        for router in routers:
            answer = client.post(
                f"{router.admin_url}/admin/reset-knowledge",
                json={"pool": pool.slug},
                headers={"Authorization": f"Bearer {token_of(router)}"},
            )
            if answer.is_error:
                raise ResetRefusedError(f"{router.name} answered {answer.status_code}.")
    return len(routers)
