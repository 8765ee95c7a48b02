"""Files of models for who may see them, and how long a node takes to load them."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from django.db.models import Max, QuerySet

from controlplane.common import permissions
from controlplane.serving.artefacts import seconds_to_load
from controlplane.serving.models import ArtefactPresence, ModelArtefact, Pool
from inventory.models import Node, NodeFolder

if TYPE_CHECKING:
    from controlplane.tenancy.models import User


def artefacts_for_viewer(viewer: "User") -> QuerySet[ModelArtefact]:
    """Files of models, by short name, with their model."""
    rows = ModelArtefact.objects.select_related("model")
    return permissions.restrict(rows, viewer, "serving.view_modelartefact")


def presences_for_viewer(viewer: "User") -> QuerySet[ArtefactPresence]:
    """Where files were seen, with artefact and node."""
    rows = ArtefactPresence.objects.select_related("artefact", "node")
    return permissions.restrict(rows, viewer, "serving.view_modelartefact")


def load_times(pool: Pool, node_ids: Collection[str]) -> dict[str, Any]:
    """Seconds to read the model once, by host; None where size or speed is unknown.

    The size is the artefact's, else that of the weights. The speed is the fastest that was measured
    on the node by reading files of models, else the one that somebody entered.
    """
    artefact = pool.artefact
    size = artefact.size_bytes if artefact is not None else pool.model.weight_bytes
    entered = dict(
        Node.objects.filter(pk__in=node_ids).values_list("hostname", "storage_bytes_per_second")
    )
    speeds = {host: (speed, "entered") for host, speed in entered.items() if speed}
    speeds |= {host: (speed, "measured") for host, speed in _measured(node_ids).items()}
    seconds = {
        host: seconds_to_load(size, speeds.get(host, (None, ""))[0]) for host in sorted(entered)
    }
    known = [value for value in seconds.values() if value is not None]
    return {
        "size_bytes": size,
        "seconds": seconds,
        "sources": {host: source for host, (_speed, source) in sorted(speeds.items())},
        # One node without a speed makes the longest time unknown.
        "longest_seconds": max(known) if known and len(known) == len(seconds) else None,
    }


def _measured(node_ids: Collection[str]) -> dict[str, int]:
    """Fastest reading that was measured on each node: cold caches and small files only slow it."""
    found: dict[str, int] = {}
    for rows in (
        NodeFolder.objects.filter(node__pk__in=node_ids),
        ArtefactPresence.objects.filter(node__pk__in=node_ids),
    ):
        measured = rows.exclude(read_bytes_per_second=None).values_list("node__hostname")
        for host, speed in measured.annotate(fastest=Max("read_bytes_per_second")):
            found[host] = max(speed, found.get(host, 0))
    return found
