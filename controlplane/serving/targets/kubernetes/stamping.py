"""Marks on the objects of an engine: for which generation and by which holder they were applied.

The hash of the specification is on the Deployment and on its Pods, so that a Pod tells what it was
made for. Generation and fencing token are on the Deployment alone: another holder that wants the
same does not restart an engine.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from controlplane.serving.targets.kubernetes.shapes import text
from inventory.kubernetes.labels import GENERATION, SPEC_HASH

FENCING_TOKEN = "consort.dev/fencing-token"  # noqa: S105  # a number that grows, no secret
RUNNERS = frozenset({"Deployment", "StatefulSet", "LeaderWorkerSet"})
"""Kinds that make Pods."""


def runner(manifests: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The object that makes the engine's Pods; None if there is none."""
    return next((row for row in manifests if row.get("kind") in RUNNERS), None)


def with_hash(manifests: Sequence[Mapping[str, Any]], spec_hash: str) -> list[dict[str, Any]]:
    """The manifests with the hash on the runner and on the template of its Pods."""
    marked = [deepcopy(dict(row)) for row in manifests]
    for row in marked:
        if row["kind"] in RUNNERS:
            _annotate(row, SPEC_HASH, spec_hash)
            for template in _templates(row["spec"]):
                _annotate(template, SPEC_HASH, spec_hash)
    return marked


def with_holder(manifest: Mapping[str, Any], *, generation: int, token: int) -> dict[str, Any]:
    """The runner as a holder applies it."""
    marked = deepcopy(dict(manifest))
    _annotate(marked, GENERATION, str(generation))
    _annotate(marked, FENCING_TOKEN, str(token))
    return marked


def token_of(found: Mapping[str, Any]) -> int:
    """Token of the holder that applied the object last; 0 when nothing legible is there."""
    written = text(found, "metadata", "annotations", FENCING_TOKEN)
    return int(written) if written.isascii() and written.isdecimal() else 0


def _templates(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Templates of Pods: one, or those of the first and the further nodes of an engine."""
    group = spec.get("leaderWorkerTemplate", {})
    named = [spec.get("template"), group.get("leaderTemplate"), group.get("workerTemplate")]
    return [template for template in named if template]


def _annotate(found: dict[str, Any], key: str, value: str) -> None:
    meta = found.setdefault("metadata", {})
    meta["annotations"] = {**(meta.get("annotations") or {}), key: value}
