"""Puts a policy in force on every router, with empty caches and class priors."""

import time
from collections.abc import Callable

from controlplane.operations.models import Operation
from controlplane.serving.models import Endpoint, Pool, PoolDocument, Router, RouterPush
from controlplane.serving.services import knowledge, pool_settings
from controlplane.tenancy.models import User

TIMEOUT_SECONDS = 45.0


class PolicyError(Exception):
    """A policy could not be put in force; the message says what is missing."""


def put_in_force(pool: Pool, policy: str, *, actor: User) -> None:
    """Change the policy, wait until every router acknowledged it, then empty what was learned."""
    before = PoolDocument.objects.filter(pool=pool).order_by("-version").first()
    pool.refresh_from_db()
    if pool.policy != policy:
        pool_settings.change_policy(
            pool_id=pool.pk,
            policy=policy,
            reason="Comparison of policies in the demo.",
            actor=actor,
        )
        least = (before.version if before else 0) + 1
        _until(lambda: in_sync(pool, at_least=least), f"The routers did not take over {policy}")
    operation = knowledge.reset_pool_knowledge(
        pool_id=pool.pk, actor=actor, reason="Both policies start with empty caches."
    )
    _until(lambda: _has_ended(operation), "The caches were not emptied")


def in_sync(pool: Pool, *, at_least: int = 1) -> bool:
    """True if every router acknowledged the newest document, which has at least this version."""
    newest = PoolDocument.objects.filter(pool=pool).order_by("-version").first()
    if newest is None or newest.version < at_least:
        return False
    acknowledged = RouterPush.objects.filter(document=newest, state="acknowledged")
    wanted = Router.objects.filter(enabled=True).count()
    return acknowledged.values("router").distinct().count() == wanted


def ready_endpoints(pool: Pool) -> int:
    """Endpoints that take requests now."""
    return Endpoint.objects.filter(pool=pool, state=Endpoint.State.READY).count()


def _has_ended(operation: Operation) -> bool:
    operation.refresh_from_db()
    if operation.state == Operation.State.FAILED:
        raise PolicyError(f"The caches were not emptied: {operation.error}")
    return operation.state == Operation.State.SUCCEEDED


def _until(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise PolicyError(f"{otherwise} within {TIMEOUT_SECONDS:.0f} s.")
        time.sleep(0.1)
