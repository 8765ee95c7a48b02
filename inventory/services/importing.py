"""Brings a file of nodes into the fleet: checked whole, then stored whole or not at all."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.common.errors import DomainError
from inventory.discovery.file_import import (
    MOST_BYTES,
    MOST_ERRORS,
    ImportRow,
    RowError,
    read_file,
)
from inventory.errors import ImportTooLargeError
from inventory.models import (
    Accelerator,
    AcceleratorModel,
    Cluster,
    ImportRun,
    Node,
    NodeType,
    Site,
)
from inventory.services import verdicts
from inventory.services.placing import (
    check_values,
    node_type_for,
    planned_node,
    refused_value,
    sentences,
)
from inventory.vendors import vendors

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


@dataclass(slots=True)
class _Known:
    """What exists, by natural key, read once for the whole file."""

    sites: dict[str, Site]
    clusters: dict[str, Cluster]
    models: dict[str, AcceleratorModel]
    nodes: dict[tuple[str, str], Node]
    serials: dict[tuple[str, str], Accelerator]
    node_types: dict[tuple[str, int], NodeType]
    """By slug of the model and number of accelerators; filled as rows ask for them."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """A node that a row asks for, not stored yet."""

    row: ImportRow
    node: Node
    devices: Sequence[Accelerator]


def import_file(*, content: bytes, file_name: str = "", dry_run: bool, actor: "User") -> ImportRun:
    """Check a CSV file and, unless `dry_run`, store all of it; one wrong row refuses the file.

    A node that exists with the same model and number of accelerators counts as unchanged, so the
    same file may be sent again. Returns the run with its errors (row, column, code, detail in the
    language of the moment); raises ImportTooLargeError or NotPermittedError. Columns:
    `inventory.discovery.file_import`.
    """
    permissions.require(actor, "inventory.import_node")
    if len(content) > MOST_BYTES:
        raise ImportTooLargeError(size=len(content), limit_bytes=MOST_BYTES)
    found = read_file(content)
    run = ImportRun(
        file_name=file_name[:200],
        sha256=hashlib.sha256(content).hexdigest(),
        dry_run=dry_run,
        rows=found.row_count,
        created_by=actor,
    )
    created: Counter[str] = Counter()
    errors = list(found.errors)
    try:
        with transaction.atomic():
            plan, refused = _plan(found.rows, created)
            errors += refused or _store(plan)
            if errors or dry_run:
                raise _UndoError
            _record(plan, actor=actor)
    except _UndoError:
        pass
    return _finish(run, created, sorted(errors, key=lambda error: error.row))


class _UndoError(Exception):
    """Ends the transaction of a dry run or of a refused file."""


def _finish(run: ImportRun, created: Counter[str], errors: Sequence[RowError]) -> ImportRun:
    run.created = {} if errors else dict(created)
    run.errors = [verdicts.shown(error) for error in errors[:MOST_ERRORS]]
    run.error_count = len(errors)
    if errors:
        run.state = ImportRun.State.REFUSED
    else:
        run.state = ImportRun.State.CHECKED if run.dry_run else ImportRun.State.APPLIED
    with transaction.atomic():
        run.save(force_insert=True)
        audit.record(
            actor=run.created_by,
            action=f"import.{run.state}",
            subject=run,
            after={"rows": run.rows, "errors": run.error_count, **run.created},
        )
    return run


def _plan(
    rows: Sequence[ImportRow], created: Counter[str]
) -> tuple[list[_Planned], list[RowError]]:
    """Nodes to be stored, and what stands in the way; sites, clusters and types are made."""
    known = _known(rows)
    plan: list[_Planned] = []
    errors = []
    for row in rows:
        try:
            error = _named(row, known) or _existing(row, known)
            if error is None:
                plan += _planned(row, known, created)
        except DomainError as refusal:
            error = RowError(row.row, "", "refused", {"why": str(refusal)})
        if error is not None:
            errors.append(error)
    return plan, errors


def _store(plan: Sequence[_Planned]) -> list[RowError]:
    """Store the nodes in a few statements; what somebody took meanwhile is an error of its row."""
    try:
        with transaction.atomic():
            Node.objects.bulk_create([planned.node for planned in plan], batch_size=1000)
            devices = [device for planned in plan for device in planned.devices]
            Accelerator.objects.bulk_create(devices, batch_size=2000)
    except IntegrityError as error:
        value = refused_value(error)
        taken = {value.lower(), value}
        for planned in plan:
            if planned.node.hostname.lower() in taken or value in planned.row.serials:
                return [RowError(planned.row.row, "", "taken-meanwhile", {"value": value})]
        raise
    return []


def _record(plan: Sequence[_Planned], *, actor: "User") -> None:
    """One entry per node, so that its history begins with the file."""
    for planned in plan:
        node = planned.node
        audit.record(
            actor=actor,
            action="node.create",
            subject=node,
            after={
                "state": node.state,
                "node_type": node.node_type.slug,
                "cluster": node.cluster.slug,
            },
            message="file import",
        )


def _known(rows: Sequence[ImportRow]) -> _Known:
    live = Node.objects.exclude(state=Node.State.RETIRED).filter(
        cluster__slug__in={row.cluster for row in rows}
    )
    devices = Accelerator.objects.exclude(state=Accelerator.State.RETIRED).filter(
        serial__in={serial for row in rows for serial in row.serials}
    )
    return _Known(
        sites={site.slug: site for site in Site.objects.all()},
        clusters={row.slug: row for row in Cluster.objects.select_related("site")},
        models={model.slug: model for model in AcceleratorModel.objects.all()},
        nodes={
            (node.cluster.slug, node.hostname.lower()): node
            for node in live.select_related("cluster", "node_type__accelerator_model")
        },
        serials={
            (device.vendor, device.serial): device for device in devices.select_related("node")
        },
        node_types={},
    )


def _named(row: ImportRow, known: _Known) -> RowError | None:
    """Vendor and model are known and belong together; site and cluster exist or are described."""
    if row.vendor not in vendors():
        facts = {"vendor": row.vendor, "allowed": ", ".join(vendors())}
        return RowError(row.row, "vendor", "unknown-vendor", facts)
    model = known.models.get(row.model)
    if model is None:
        offered = sorted(slug for slug, each in known.models.items() if each.vendor == row.vendor)
        facts = {"model": row.model, "vendor": row.vendor, "allowed": _listed(offered)}
        return RowError(row.row, "model", "unknown-model", facts)
    if model.vendor != row.vendor:
        facts = {"model": row.model, "vendor": row.vendor, "other_vendor": model.vendor}
        return RowError(row.row, "model", "model-of-other-vendor", facts)
    return _placed(row, known)


def _placed(row: ImportRow, known: _Known) -> RowError | None:
    cluster = known.clusters.get(row.cluster)
    if row.site not in known.sites and not row.new_site.get("country"):
        facts = {"site": row.site, "allowed": _listed(sorted(known.sites))}
        return RowError(row.row, "site", "unknown-site", facts)
    if cluster is None and not row.new_cluster:
        facts = {"cluster": row.cluster, "allowed": _listed(sorted(known.clusters))}
        return RowError(row.row, "cluster", "unknown-cluster", facts)
    if cluster is not None and cluster.site.slug != row.site:
        facts = {"cluster": row.cluster, "site": cluster.site.slug, "other_site": row.site}
        return RowError(row.row, "cluster", "cluster-of-other-site", facts)
    return None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "–"  # noqa: RUF001 - a dash for an empty list


def _existing(row: ImportRow, known: _Known) -> RowError | None:
    """Nothing that exists stands in the way; the node itself may exist exactly like this."""
    node = known.nodes.get((row.cluster, row.hostname.lower()))
    if node is not None and node.vendor != row.vendor:
        facts = {"node": row.hostname, "vendor": node.vendor, "other_vendor": row.vendor}
        return RowError(row.row, "vendor", "other-vendor-exists", facts)
    if node is not None and not _is_same(node, row):
        facts = {"node": row.hostname, "node_type": node.node_type.name}
        return RowError(row.row, "hostname", "node-differs", facts)
    for serial in row.serials:
        device = known.serials.get((row.vendor, serial))
        if device is not None and device.node_id != (node.pk if node else None):
            facts = {"serial": serial, "vendor": row.vendor, "accelerator": str(device)}
            return RowError(row.row, "serials", "serial-in-use", facts)
    return None


def _is_same(node: Node, row: ImportRow) -> bool:
    kind = node.node_type
    return (kind.accelerator_model.slug, kind.accelerator_count) == (row.model, row.accelerators)


def _planned(row: ImportRow, known: _Known, created: Counter[str]) -> list[_Planned]:
    """The node of a row; empty if it exists. Makes site, cluster and type when they are missing."""
    if (row.cluster, row.hostname.lower()) in known.nodes:
        created["unchanged"] += 1
        return []
    site = known.sites.get(row.site) or _made_site(row, known, created)
    cluster = known.clusters.get(row.cluster) or _made_cluster(row, site, known, created)
    kind = (row.model, row.accelerators)
    if kind not in known.node_types:
        known.node_types[kind] = node_type_for(known.models[row.model], row.accelerators)
    node, devices = planned_node(
        cluster=cluster,
        hostname=row.hostname,
        node_type=known.node_types[kind],
        serials=row.serials,
        state=row.state,
        details=row.details,
    )
    created["nodes"] += 1
    created["accelerators"] += row.accelerators
    return [_Planned(row, node, devices)]


def _made_site(row: ImportRow, known: _Known, created: Counter[str]) -> Site:
    described: Mapping[str, Any] = row.new_site
    sources = {
        name: {"source": "import file", "confidence": "claimed"}
        for name in ("pue", "tariff_per_kwh")
        if described[name] is not None
    }
    values = {**described, "name": described["name"] or row.site, "figures": sources}
    site = Site(slug=row.site, **values)
    check_values(site)
    with sentences(site):
        site.save(force_insert=True)
    known.sites[row.site] = site
    created["sites"] += 1
    return site


def _made_cluster(row: ImportRow, site: Site, known: _Known, created: Counter[str]) -> Cluster:
    described = row.new_cluster
    cluster = Cluster(
        slug=row.cluster, site=site, kind=described["kind"], name=described["name"] or row.cluster
    )
    check_values(cluster)
    with sentences(cluster):
        cluster.save(force_insert=True)
    known.clusters[row.cluster] = cluster
    created["clusters"] += 1
    return cluster
