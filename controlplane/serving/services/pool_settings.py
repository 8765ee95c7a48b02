"""What a pool's routers get with its next document (policy, SLO, objectives, rewrites), and how.

Every change of them is one path: lock, change, check, audit, event, task.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction

from controlplane.audit import services as audit
from controlplane.common import jobs, permissions
from controlplane.operations import outbox
from controlplane.serving import documents
from controlplane.serving.container_settings import read_settings
from controlplane.serving.errors import (
    ContainersRefusedError,
    GatewayRulesRefusedError,
    PolicyRefusedError,
    PoolRetiredError,
    SloRefusedError,
)
from controlplane.serving.models import Pool
from controlplane.serving.renderers.base import RenderRefusedError
from routing.core.document import DocumentError

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


@dataclass(frozen=True)
class _Setting:
    """Fields that are changed together."""

    name: str
    """In the audit and in events."""
    fields: tuple[str, ...]
    check: Callable[[Pool], None]
    """Raises for what no router would take."""


def change_policy(
    *,
    pool_id: UUID,
    policy: str,
    parameters: Mapping[str, Any] | None = None,
    reason: str = "",
    actor: "User",
) -> Pool:
    """Choose another routing policy; routers get it as the next document version.

    Raises NotPermittedError, PoolRetiredError or PolicyRefusedError.
    """
    changes = {"policy": policy, "policy_parameters": dict(parameters or {})}
    return _change(_POLICY, pool_id, changes, reason=reason, actor=actor)


def change_slo(
    *, pool_id: UUID, changes: Mapping[str, Any], reason: str = "", actor: "User"
) -> Pool:
    """Set `slo_ttft_p95_seconds`, `slo_tpot_p95_seconds` or `admission`; others stay.

    A target of `None` is taken away; `admission` is replaced as a whole. Routers get it as the next
    document version. Raises NotPermittedError, PoolRetiredError, ValidationError or
    SloRefusedError.
    """
    return _change(_SLO, pool_id, changes, reason=reason, actor=actor)


def change_gateway_rules(
    *, pool_id: UUID, changes: Mapping[str, Any], reason: str = "", actor: "User"
) -> Pool:
    """Set `objectives` or `rewrites`, each as a whole; the other stays.

    Routers get it as the next document version. Raises NotPermittedError, PoolRetiredError or
    GatewayRulesRefusedError.
    """
    return _change(_GATEWAY_RULES, pool_id, changes, reason=reason, actor=actor)


def change_rollout(
    *, pool_id: UUID, changes: Mapping[str, Any], reason: str = "", actor: "User"
) -> Pool:
    """Set `canary_seconds` or `self_heal`; the other stays.

    Raises NotPermittedError, PoolRetiredError or ValidationError.
    """
    return _change(_ROLLOUT, pool_id, changes, reason=reason, actor=actor)


def change_containers(
    *, pool_id: UUID, containers: Mapping[str, Any], reason: str = "", actor: "User"
) -> Pool:
    """Say how engines run in containers; replaced as a whole.

    Engines that run take it with their next change. Raises NotPermittedError, PoolRetiredError or
    ContainersRefusedError.
    """
    changes = {"containers": dict(containers)}
    return _change(_CONTAINERS, pool_id, changes, reason=reason, actor=actor)


def check_settings(pool: Pool) -> None:
    """Raise PolicyRefusedError, SloRefusedError or GatewayRulesRefusedError for what no router
    would take, and ContainersRefusedError for what no cluster would.
    """
    _check_policy(pool)
    _check_slo(pool)
    _check_gateway_rules(pool)
    _check_containers(pool)


@transaction.atomic
def _change(
    setting: _Setting, pool_id: UUID, changes: Mapping[str, Any], *, reason: str, actor: "User"
) -> Pool:
    """Set those of the setting's fields that are among the changes."""
    pool = Pool.objects.select_for_update(no_key=True).get(pk=pool_id)
    permissions.require(actor, "serving.change_pool", pool)
    if pool.state == Pool.State.RETIRED:
        raise PoolRetiredError(pool=pool.name)
    before = {name: getattr(pool, name) for name in setting.fields}
    after = before | {name: changes[name] for name in setting.fields if name in changes}
    for name, value in after.items():
        setattr(pool, name, value)
    setting.check(pool)
    pool.save(update_fields=[*setting.fields, "updated_at"])
    audit.record(
        actor=actor,
        action=f"pool.{setting.name}",
        subject=pool,
        reason=reason,
        before=before,
        after=after,
    )
    outbox.emit(f"consort.pool.{setting.name}-changed", subject=pool, data=after)
    jobs.after_commit("serving.tasks.reconcile_pool", str(pool.pk))
    return pool


def _check_policy(pool: Pool) -> None:
    try:
        documents.policy_of(pool.policy, pool.policy_parameters)
        documents.recording_of(pool.recording)
    except DocumentError as error:
        allowed = ", ".join(error.allowed) or ", ".join(Pool.Policy.values)
        raise PolicyRefusedError(
            pointer=error.pointer, detail=error.message, allowed=allowed
        ) from error


def _check_changed_slo(pool: Pool) -> None:
    pool.full_clean()
    _check_slo(pool)


def _check_slo(pool: Pool) -> None:
    try:
        documents.slo_of(pool.slo_ttft_p95_seconds, pool.slo_tpot_p95_seconds)
        documents.admission_of(pool.policy, pool.admission)
    except DocumentError as error:
        raise SloRefusedError(pointer=error.pointer, detail=error.message) from error


def _check_gateway_rules(pool: Pool) -> None:
    try:
        documents.objectives_of(pool.objectives)
        documents.rewrites_of(pool.rewrites)
        documents.check_writable(pool.objectives, pool.rewrites)
    except DocumentError as error:
        raise GatewayRulesRefusedError(pointer=error.pointer, detail=error.message) from error


def _check_containers(pool: Pool) -> None:
    """Nothing said is allowed: a pool may run on machines of this installation alone."""
    if not pool.containers:
        return
    try:
        # The namespace may be the cluster's.
        read_settings({"namespace": "unsaid", **pool.containers})
    except RenderRefusedError as error:
        raise ContainersRefusedError(pointer=error.field, detail=str(error)) from error


_POLICY = _Setting("policy", ("policy", "policy_parameters"), _check_policy)
_SLO = _Setting(
    "slo", ("slo_ttft_p95_seconds", "slo_tpot_p95_seconds", "admission"), _check_changed_slo
)
_ROLLOUT = _Setting("rollout", ("canary_seconds", "self_heal"), Pool.full_clean)
_CONTAINERS = _Setting("containers", ("containers",), _check_containers)
_GATEWAY_RULES = _Setting("gateway-rules", ("objectives", "rewrites"), _check_gateway_rules)
