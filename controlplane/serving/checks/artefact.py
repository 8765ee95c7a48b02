"""Are the model's files where the plan needs them, and may they be asked for there?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from controlplane.serving.artefacts import is_inside, source_host
from controlplane.serving.checks.base import CheckResult
from controlplane.serving.models import ArtefactPresence, ModelArtefact, Pool
from controlplane.serving.plans import PlanItem, items_of
from controlplane.serving.targets import target
from inventory.models import Node

if TYPE_CHECKING:
    from controlplane.serving.models import ChangePlan

Presence = ArtefactPresence.State


def check(plan: "ChangePlan") -> CheckResult:
    """Block for files from outside an air-gapped site and for wrong ones; warn of the rest."""
    items = [item for item in items_of(plan.diff) if item.to_role]
    nodes = list(
        Node.objects.filter(pk__in={item.node for item in items})
        .select_related("cluster__site")
        .order_by("hostname", "pk")
    )
    if not nodes:
        return CheckResult(verdict="pass", sentence=_("The plan starts no engine."))
    artefact = plan.pool.artefact
    if artefact is None:
        return _without_files(plan.pool, nodes)
    return _outside(artefact, nodes) or _on_nodes(artefact, nodes, items)


def _without_files(pool: Pool, nodes: Sequence[Node]) -> CheckResult:
    closed = sorted({node.cluster.site.name for node in nodes if node.cluster.site.air_gapped})
    if closed and pool.engine != Pool.Engine.SIMULATED:
        text = _(
            "{sites} is air-gapped and pool {pool} names no files of its model, so its engines "
            "would ask a public hub. Give the pool an artefact."
        )
        sentence = text.format(sites=", ".join(closed), pool=pool.name)
        return CheckResult(verdict="block", sentence=sentence)
    return CheckResult(
        verdict="pass",
        sentence=_("The pool names no files of its model; engines find the weights themselves."),
    )


def _outside(artefact: ModelArtefact, nodes: Sequence[Node]) -> CheckResult | None:
    host = source_host(artefact.kind, artefact.uri, artefact.endpoint)
    if host is None:
        return None
    closed = sorted(
        {
            node.cluster.site.name
            for node in nodes
            if node.cluster.site.air_gapped
            and not is_inside(host, node.cluster.site.internal_hosts)
        }
    )
    if not closed:
        return None
    text = _(
        "Artefact {artefact} comes from {host}, which is not inside {sites}, an air-gapped site. "
        "Use a source inside, or add the host to those of the site."
    )
    sentence = text.format(artefact=artefact.slug, host=host, sites=", ".join(closed))
    return CheckResult(verdict="block", sentence=sentence, numbers={"host": host})


def _on_nodes(
    artefact: ModelArtefact, nodes: Sequence[Node], items: Sequence[PlanItem]
) -> CheckResult:
    rows = ArtefactPresence.objects.filter(artefact=artefact, node__in=nodes)
    states = {node.hostname: Presence.UNKNOWN.value for node in nodes} | dict(
        rows.values_list("node__hostname", "state")
    )
    numbers = {"artefact": artefact.slug, "nodes": states}
    wrong = sorted(name for name, state in states.items() if state == Presence.WRONG)
    if wrong:
        text = _("Files of {artefact} are not the stated ones on: {nodes}.")
        sentence = text.format(artefact=artefact.slug, nodes=", ".join(wrong))
        return CheckResult(verdict="block", sentence=sentence, numbers=numbers)
    warnings = _doubts(artefact, states, items)
    if warnings:
        return CheckResult(verdict="warn", sentence=" ".join(warnings), numbers=numbers)
    text = _("Files of {artefact} are on every node of the plan; each wave counts them again.")
    return CheckResult(
        verdict="pass", sentence=text.format(artefact=artefact.slug), numbers=numbers
    )


def _doubts(
    artefact: ModelArtefact, states: dict[str, str], items: Sequence[PlanItem]
) -> list[str]:
    found = []
    away = sorted(name for name, state in states.items() if state != Presence.PRESENT)
    fetches = all(
        artefact.kind in target(item.target).capabilities().fetches
        for item in items
        if item.hostname in away
    )
    if away and fetches:
        text = _("Files of {artefact} are fetched before the drain on: {nodes}.")
        found.append(text.format(artefact=artefact.slug, nodes=", ".join(away)))
    elif away:
        text = _(
            "Files of {artefact} were not seen on: {nodes}. A wave waits until they are there."
        )
        found.append(text.format(artefact=artefact.slug, nodes=", ".join(away)))
    if not artefact.sha256:
        text = _("Nobody stated the SHA-256 of {artefact}, so other files are not noticed.")
        found.append(text.format(artefact=artefact.slug))
    return found
