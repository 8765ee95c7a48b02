"""Findings as the pages show them: what each source said, in words, and what may be done."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from inventory.models import Finding, Observation

FACTS: Mapping[str, object] = {
    "count": _("devices"),
    "usable": _("given out"),
    "model": _("model"),
    "memory_mib": _("memory, MiB"),
    "partition": _("partitions"),
    "shared": _("shares of each device"),
    "ready": _("state of the node"),
    "cordoned": _("cordoned"),
    "taint": _("taint"),
    "other": _("something no vendor file knows"),
    "unread": _("cannot be read"),
}
SOURCES: Mapping[str, object] = {
    "resource-slice": _("ResourceSlice"),
    "extended-resource": _("extended resource"),
    "label": _("label"),
    "node-object": _("Node object"),
}
ACCEPTABLE = frozenset({
    "create-node", "write-serial", "move-accelerator", "replace-accelerator", "retire-accelerator",
    "add-accelerator",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class FactLine:
    """One fact in words, with the source that said it."""

    name: object
    value: object
    source: object
    place: str


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding with the facts behind it."""

    finding: Finding
    facts: list[FactLine]

    @property
    def acceptable(self) -> bool:
        """False where accepting has nothing to take over: somebody has to look."""
        return self.finding.suggestion.get("do") in ACCEPTABLE

    @property
    def needs_model(self) -> bool:
        """True if accepting needs the accelerator model from a person."""
        suggestion = self.finding.suggestion
        return suggestion.get("do") == "create-node" and not suggestion.get("model")


def row_of(finding: Finding) -> FindingRow:
    """The finding, whose observation is joined, with its facts."""
    return FindingRow(finding, facts_of(finding.observation))


def facts_of(observation: Observation | None) -> list[FactLine]:
    """What each source of a cluster said; empty for an agent's report, which is one source."""
    content = observation.content if observation is not None else {}
    return [
        FactLine(
            name=FACTS.get(fact["name"], fact["name"]),
            value=fact["value"],
            source=SOURCES.get(fact["source"], fact["source"]),
            place=fact["place"],
        )
        for fact in content.get("facts", [])
    ]
