"""Files of models: add, change, retire, use in a pool, and bring to nodes before a wave."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from controlplane.audit import services as audit
from controlplane.common import jobs, permissions
from controlplane.operations import outbox
from controlplane.serving.artefacts import judged, source_problem
from controlplane.serving.errors import (
    ArtefactInUseError,
    ArtefactRefusedError,
    ArtefactUnusableError,
    PoolRetiredError,
)
from controlplane.serving.models import ArtefactPresence, ModelArtefact, Pool
from controlplane.serving.plans import PlanItem
from controlplane.serving.targets import target
from controlplane.serving.targets.base import (
    SeenFiles,
    TargetRefusedError,
    TargetUnavailableError,
    WantedFiles,
)
from inventory.models import Node

if TYPE_CHECKING:
    from controlplane.tenancy.models import User

CHANGEABLE = ("uri", "endpoint", "node_folder", "revision", "sha256", "size_bytes", "licence",
              "gated")  # fmt: skip
State = ModelArtefact.State


@transaction.atomic
def create_artefact(*, actor: "User", reason: str = "", **fields: Any) -> ModelArtefact:
    """Add files of a model. Raises NotPermittedError, ArtefactRefusedError or ValidationError."""
    permissions.require(actor, "serving.add_modelartefact")
    artefact = ModelArtefact(**fields)
    _check(artefact)
    artefact.save(force_insert=True)
    audit.record(
        actor=actor, action="modelartefact.create", subject=artefact, reason=reason,
        after=_shown(artefact) | {"slug": artefact.slug, "kind": artefact.kind},
    )  # fmt: skip
    outbox.emit("consort.modelartefact.created", subject=artefact)
    return artefact


@transaction.atomic
def change_artefact(
    *, artefact_id: UUID, reason: str, actor: "User", **changes: Any
) -> ModelArtefact:
    """Change where files are or what is known of them; what was seen on nodes is judged again.

    Raises NotPermittedError, ArtefactRefusedError or ValidationError.
    """
    artefact = _locked(artefact_id)
    permissions.require(actor, "serving.change_modelartefact", artefact)
    before = _shown(artefact)
    for field in set(changes) & set(CHANGEABLE):
        setattr(artefact, field, changes[field])
    _check(artefact)
    artefact.save()
    _forget(artefact, moved=any(before[field] != _shown(artefact)[field] for field in _PLACE))
    audit.record(
        actor=actor, action="modelartefact.change", subject=artefact, reason=reason,
        before=before, after=_shown(artefact),
    )  # fmt: skip
    outbox.emit("consort.modelartefact.changed", subject=artefact)
    return artefact


@transaction.atomic
def retire_artefact(*, artefact_id: UUID, reason: str, actor: "User") -> ModelArtefact:
    """Take files off the list; a second time changes nothing.

    Raises NotPermittedError or ArtefactInUseError.
    """
    artefact = _locked(artefact_id)
    permissions.require(actor, "serving.delete_modelartefact", artefact)
    if artefact.state == State.RETIRED:
        return artefact
    pools = list(artefact.pools.order_by("slug").values_list("slug", flat=True))
    if pools:
        raise ArtefactInUseError(artefact=artefact.slug, pools=", ".join(pools))
    artefact.state = State.RETIRED
    artefact.save(update_fields=["state", "updated_at"])
    audit.record(actor=actor, action="modelartefact.retire", subject=artefact, reason=reason)
    outbox.emit("consort.modelartefact.retired", subject=artefact)
    return artefact


@transaction.atomic
def set_pool_artefact(
    *, pool_id: UUID, artefact_id: UUID | None, reason: str, actor: "User"
) -> Pool:
    """Say which files a pool's engines load; None lets them find the weights themselves.

    Engines that run are left as they are; those of the next plan start from the files.
    Raises NotPermittedError, PoolRetiredError or ArtefactUnusableError.
    """
    pool = Pool.objects.select_for_update(no_key=True, of=("self",)).get(pk=pool_id)
    permissions.require(actor, "serving.change_pool", pool)
    if pool.state == Pool.State.RETIRED:
        raise PoolRetiredError(pool=pool.name)
    artefact = None if artefact_id is None else _locked(artefact_id)
    if artefact is not None:
        _require_fitting(pool, artefact)
    before = None if pool.artefact_id is None else str(pool.artefact_id)
    pool.artefact = artefact
    pool.save(update_fields=["artefact", "updated_at"])
    audit.record(
        actor=actor, action="pool.set-artefact", subject=pool, reason=reason,
        before={"artefact": before}, after={"artefact": artefact.slug if artefact else None},
    )  # fmt: skip
    outbox.emit("consort.pool.artefact-set", subject=pool)
    jobs.after_commit("serving.tasks.reconcile_pool", str(pool.pk))
    return pool


def bring_files(pool: Pool, items: Sequence[PlanItem], *, seconds: float) -> list[ArtefactPresence]:
    """Ask targets for the pool's files on the nodes of items; what was seen of each node.

    Nodes whose engines somebody else runs are left out. A target that does not answer leaves the
    state unknown, with its sentence.
    """
    artefact = pool.artefact
    if artefact is None:
        return []
    by_target: dict[str, set[str]] = defaultdict(set)
    for item in items:
        if item.to_role and target(item.target).capabilities().starts_engines:
            by_target[item.target].add(item.node)
    found: list[ArtefactPresence] = []
    for slug, node_ids in sorted(by_target.items()):
        nodes = Node.objects.filter(pk__in=node_ids).select_related("cluster")
        found += _bring(slug, artefact, list(nodes.order_by("hostname", "pk")), pool, seconds)
    return found


def _bring(
    slug: str, artefact: ModelArtefact, nodes: Sequence[Node], pool: Pool, seconds: float
) -> list[ArtefactPresence]:
    place, seen = target(slug), dict[str, SeenFiles]()
    able = place.capabilities()
    if artefact.kind in able.fetches | able.checks:
        wanted = [_wanted(artefact, node, pool, seconds) for node in nodes]
        try:
            seen = place.prefetch(wanted)
        except (TargetUnavailableError, TargetRefusedError) as error:
            seen = {
                str(node.pk): SeenFiles(sight="failed", detail=str(error)[:500]) for node in nodes
            }
    told = _agents_words(artefact, nodes) if artefact.folder else {}
    unable = _("Target {target} cannot tell of files of the kind {kind}.").format(
        target=slug, kind=artefact.kind
    )
    nothing = SeenFiles(sight="failed", detail=unable)
    return [
        _keep(artefact, node, seen.get(str(node.pk)) or told.get(node.pk) or nothing)
        for node in nodes
    ]


def _agents_words(artefact: ModelArtefact, nodes: Iterable[Node]) -> Mapping[UUID, SeenFiles]:
    """What nodes' agents said of the folder, for a target that cannot look itself."""
    rows = Node.objects.filter(
        pk__in=[node.pk for node in nodes], folders__path=artefact.folder
    ).values_list(
        "pk", "folders__error", "folders__size_bytes", "folders__sha256",
        "folders__read_bytes_per_second",
    )  # fmt: skip
    return {
        node: SeenFiles(
            sight="failed" if error else "there", size_bytes=size, sha256=sha256,
            read_bytes_per_second=speed, detail=error,
        )
        for node, error, size, sha256, speed in rows
    }  # fmt: skip


def _keep(artefact: ModelArtefact, node: Node, seen: SeenFiles) -> ArtefactPresence:
    """Write what was seen; figures of an earlier look stay while the files are looked at again."""
    values: dict[str, Any] = {
        "state": judged(seen.sight, seen.sha256, artefact.sha256),
        "detail": seen.detail[:500],
        "checked_at": timezone.now(),
    }
    if seen.sight == "there":
        values |= {"size_bytes": seen.size_bytes, "sha256": seen.sha256}
        if seen.read_bytes_per_second is not None:
            values["read_bytes_per_second"] = seen.read_bytes_per_second
    row, _created = ArtefactPresence.objects.update_or_create(
        artefact=artefact, node=node, defaults=values
    )
    return row


def _wanted(artefact: ModelArtefact, node: Node, pool: Pool, seconds: float) -> WantedFiles:
    return WantedFiles(
        artefact=artefact.slug,
        node=str(node.pk),
        hostname=node.hostname,
        cluster=str(node.cluster_id),
        namespace=pool.containers.get("namespace") or node.cluster.namespace,
        kind=artefact.kind,
        uri=artefact.uri,
        endpoint=artefact.endpoint,
        folder=artefact.folder,
        sha256=artefact.sha256,
        image=settings.PREFETCH_IMAGE,
        secret=settings.PREFETCH_SECRET,
        seconds=seconds,
    )


_PLACE = ("uri", "endpoint", "node_folder", "revision")


def _forget(artefact: ModelArtefact, *, moved: bool) -> None:
    """Judge again what was seen; files at another place or of another revision were not seen."""
    now: datetime = timezone.now()
    rows = ArtefactPresence.objects.filter(artefact=artefact)
    if moved:
        rows.update(
            state=ArtefactPresence.State.UNKNOWN, sha256="", size_bytes=None, updated_at=now
        )
        return
    seen = rows.filter(state__in=["present", "wrong"])
    for row in seen:
        row.state = judged("there", row.sha256, artefact.sha256)
        row.save(update_fields=["state", "updated_at"])


def _locked(artefact_id: UUID) -> ModelArtefact:
    rows = ModelArtefact.objects.select_for_update(no_key=True, of=("self",))
    return rows.select_related("model").get(pk=artefact_id)


def _check(artefact: ModelArtefact) -> None:
    artefact.full_clean()
    problem = source_problem(artefact.kind, artefact.uri, artefact.endpoint, artefact.node_folder)
    if problem is not None:
        field, allowed = problem
        raise ArtefactRefusedError(
            field=field, artefact=artefact.slug, value=repr(getattr(artefact, field)),
            allowed=allowed,
        )  # fmt: skip


def _require_fitting(pool: Pool, artefact: ModelArtefact) -> None:
    detail = ""
    if artefact.state == State.RETIRED:
        detail = _("it is retired.")
    elif artefact.model_id != pool.model_id:
        detail = _("it holds the model {model}.").format(model=artefact.model.slug)
    elif pool.model.revision and artefact.revision not in {"", pool.model.revision}:
        detail = _("it holds revision {revision}, not {wanted}.").format(
            revision=artefact.revision, wanted=pool.model.revision
        )
    if detail:
        raise ArtefactUnusableError(artefact=artefact.slug, pool=pool.name, detail=detail)


def _shown(artefact: ModelArtefact) -> dict[str, Any]:
    return {field: getattr(artefact, field) for field in CHANGEABLE}
