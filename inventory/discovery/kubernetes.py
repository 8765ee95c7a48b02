"""Nodes of a Kubernetes cluster: Node objects and ResourceSlices become `FoundNode`s; no I/O here.

Three sources speak of accelerators, the most exact first: ResourceSlices (devices one by one, often
with serials), extended resources (how many, and how many are given out), labels of the vendors'
labellers (model, memory, sometimes how many). The first that says something wins; what each said is
kept as facts, and where two disagree that is a doubt. Nothing said stays None, never 0: a device
plugin that is away leaves a capacity of 0 behind.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from inventory.discovery.base import Doubt, FoundFact, FoundNode, NodeState
from inventory.discovery.slices import (
    MOST_DEVICES,
    Published,
    by_node,
    mapping,
    quantity,
    read_slices,
    sequence,
    text,
)
from inventory.facts import names
from inventory.vendors import vendors
from inventory.vendors.base import LabelFacts

MOST_FACTS = 64
MOST_LABEL = 63
"""Characters of a label's value (Kubernetes' own limit); a longer one is no label."""
MOST_MEMORY_MIB = 2**31 - 1
MEMORY_TOLERANCE = 0.1
"""Labels round ("192G"), and drivers hold back a part: so much difference says nothing."""
_SLICE, _RESOURCE, _LABEL, _NODE = "resource-slice", "extended-resource", "label", "node-object"
_HOSTNAME = "kubernetes.io/hostname"
_OF_KUBERNETES = ("kubernetes.io", "k8s.io")
_SILENT = LabelFacts(None, None, None)
_STATES: Mapping[str, NodeState] = {"True": "ready", "False": "not-ready", "Unknown": "lost"}


@dataclass(slots=True)
class _Said:
    """What is known of one vendor's devices on one node, by source; None: that source is silent."""

    vendor: str
    facts: list[FoundFact] = field(default_factory=list)
    published: Published | None = None
    capacity: int | None = None
    allocatable: int | None = None
    partitions: list[str] = field(default_factory=list)
    labels: LabelFacts = _SILENT
    unread: list[str] = field(default_factory=list)

    def note(self, name: str, value: str | int, source: str, place: str) -> None:
        if len(self.facts) < MOST_FACTS:
            self.facts.append(FoundFact(name, value, source, place[:200]))


def read_nodes(
    nodes: Iterable[Any],
    slices: Iterable[Any],
    *,
    seen_at: datetime,
    planned: Mapping[str, str] | None = None,
) -> list[FoundNode]:
    """One `FoundNode` per Node object that has a name, in the order of their hostnames.

    `planned` gives the vendor by hostname in lower case: on a node with devices of several vendors,
    those of the planned one are looked at, and the others are a doubt. Of two Node objects with one
    hostname the second keeps its object's name.
    """
    published = by_node(slices)
    found: dict[str, FoundNode] = {}
    for node in sorted(map(mapping, nodes), key=_name):
        name = _name(node)
        if not name:
            continue
        hostname = text(_labels(node).get(_HOSTNAME), most=253) or name
        hostname = name if hostname.lower() in found else hostname
        wanted = (planned or {}).get(hostname.lower(), "")
        seen = _read(node, hostname, read_slices(published.get(name, ())), seen_at, wanted)
        found[hostname.lower()] = seen
    return [found[key] for key in sorted(found)]


def content_of(found: FoundNode) -> dict[str, Any]:
    """A look as JSON-ready values, without its time: equal looks give equal content."""
    return {
        "hostname": found.hostname,
        "vendor": found.vendor,
        "accelerators": [asdict(device) for device in found.accelerators],
        "count": found.count,
        "usable": found.usable,
        "model": found.model,
        "memory_mib": found.memory_mib,
        "state": found.state,
        "facts": [asdict(fact) for fact in found.facts],
        "doubts": [asdict(doubt) for doubt in found.doubts],
    }


def digest_of(node: Any) -> str:
    """Changes when something of a Node object changes that matters here; heartbeats do not."""
    metadata, spec = mapping(mapping(node).get("metadata")), mapping(mapping(node).get("spec"))
    status = mapping(mapping(node).get("status"))
    ready = [
        (each.get("status"), each.get("reason"))
        for each in map(mapping, sequence(status.get("conditions")))
        if each.get("type") == "Ready"
    ]
    matter = [
        metadata.get("name"), metadata.get("labels"), spec.get("unschedulable"),
        spec.get("taints"), status.get("capacity"), status.get("allocatable"), ready,
    ]  # fmt: skip
    return digest(matter)


def digest(value: Any) -> str:
    """Short hash of JSON-ready values, whatever the order of their keys."""
    plain = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def hostname_of(node: Any) -> str:
    """Hostname of a Node object as `read_nodes` gives it; empty if it has no name."""
    labels = _labels(mapping(node))
    return text(labels.get(_HOSTNAME), most=253) or _name(mapping(node))


def _read(
    node: Mapping[str, Any],
    hostname: str,
    published: Sequence[Published],
    seen_at: datetime,
    planned: str,
) -> FoundNode:
    said: dict[str, _Said] = {}
    other: list[FoundFact] = []
    _read_slices(published, said, other)
    _read_resources(node, said, other)
    _read_labels(node, said)
    state, doubts, facts = _node_itself(node)
    chosen = _chosen(said, planned)
    if chosen is None:
        return FoundNode(
            hostname, "", "kubernetes", seen_at, (), has_slots=False, state=state,
            facts=(*facts, *other)[:MOST_FACTS], doubts=tuple(doubts),
        )  # fmt: skip
    for vendor, each in said.items():
        if vendor != chosen.vendor:
            doubts.append(Doubt("foreign-driver", chosen.vendor, _named(each)))
            other += each.facts
    return FoundNode(
        hostname=hostname,
        vendor=chosen.vendor,
        source="kubernetes",
        seen_at=seen_at,
        accelerators=chosen.published.devices if chosen.published else (),
        count=_count(chosen),
        usable=_usable(chosen),
        model=_model(chosen),
        memory_mib=_memory(chosen),
        has_slots=False,
        state=state,
        facts=(*chosen.facts, *facts, *other)[:MOST_FACTS],
        doubts=(*doubts, *_doubts(chosen)),
    )


def _read_slices(
    published: Sequence[Published], said: dict[str, _Said], other: list[FoundFact]
) -> None:
    for each in published:
        vendor = names.vendor_of_driver(each.driver)
        place = f"{each.driver} {', '.join(each.places)}".strip()[:200]
        if vendor is None:
            other.append(FoundFact("other", len(each.devices), _SLICE, place))
            continue
        entry = said.setdefault(vendor, _Said(vendor))
        if each.unread:
            entry.unread.append(f"{place}: {each.unread}")
            entry.note("unread", each.unread, _SLICE, place)
            continue
        entry.published = each
        entry.partitions += [f"{each.driver} {kind}" for kind in each.partitions]
        if each.devices:
            entry.note("count", len(each.devices), _SLICE, place)
            entry.note("usable", len(each.devices) - _out_of_use(each), _SLICE, place)
        for model in sorted({device.name for device in each.devices if device.name}):
            entry.note("model", model, _SLICE, place)
        for memory in sorted({d.memory_total_mib for d in each.devices if d.memory_total_mib}):
            entry.note("memory_mib", memory, _SLICE, place)


def _read_resources(
    node: Mapping[str, Any], said: dict[str, _Said], other: list[FoundFact]
) -> None:
    status = mapping(node.get("status"))
    capacity, allocatable = mapping(status.get("capacity")), mapping(status.get("allocatable"))
    for resource in sorted({*map(str, capacity), *map(str, allocatable)}):
        domain = resource.partition("/")[0]
        if "/" not in resource or domain.endswith(_OF_KUBERNETES):
            continue
        all_of_it, given_out = quantity(capacity.get(resource)), quantity(allocatable.get(resource))
        vendor = names.vendor_of_resource(resource)
        if vendor is None:
            other.append(FoundFact("other", all_of_it or 0, _RESOURCE, resource[:200]))
            continue
        entry = said.setdefault(vendor, _Said(vendor))
        if (all_of_it is None and resource in capacity) or (all_of_it or 0) > MOST_DEVICES:
            entry.unread.append(f"{resource}: {text(str(capacity.get(resource)), most=40)}")
            entry.note("unread", text(str(capacity.get(resource)), most=40), _RESOURCE, resource)
        elif names.is_whole_device(resource):
            _read_whole(entry, resource, all_of_it, given_out)
        elif all_of_it:
            entry.partitions.append(resource)
            entry.note("partition", all_of_it, _RESOURCE, resource)


def _read_whole(entry: _Said, resource: str, capacity: int | None, allocatable: int | None) -> None:
    """The first resource of a vendor that has any counts; the others are its other families."""
    if capacity:
        entry.note("count", capacity, _RESOURCE, resource)
    if allocatable is not None:
        entry.note("usable", allocatable, _RESOURCE, resource)
    if not entry.capacity:
        entry.capacity, entry.allocatable = capacity, allocatable


def _read_labels(node: Mapping[str, Any], said: dict[str, _Said]) -> None:
    """Labels speak for a vendor that another source names, or when they say more than a name."""
    labels = {
        key: value
        for key, value in _labels(node).items()
        if isinstance(key, str) and isinstance(value, str) and len(value) <= MOST_LABEL
    }
    for slug, vendor in vendors().items():
        facts = vendor.read_labels(labels)
        knows_model = facts.model is not None and names.model_named(slug, facts.model) is not None
        if slug not in said and not (knows_model or facts.count or facts.memory_mib):
            continue
        entry = said.setdefault(slug, _Said(slug))
        if max(facts.count or 0, facts.replicas or 0) > MOST_DEVICES:
            entry.unread.append(f"{vendor.name}: {max(facts.count or 0, facts.replicas or 0)}"[:80])
            facts = replace(facts, count=None, replicas=None)
        if (facts.memory_mib or 0) > MOST_MEMORY_MIB:
            facts = replace(facts, memory_mib=None)
        entry.labels = facts
        for name, value in (
            ("model", facts.model), ("memory_mib", facts.memory_mib), ("count", facts.count),
            ("shared", facts.replicas), ("partition", facts.partition),
        ):  # fmt: skip
            if value:
                entry.note(name, value, _LABEL, vendor.name)


def _node_itself(node: Mapping[str, Any]) -> tuple[NodeState, list[Doubt], list[FoundFact]]:
    spec, doubts, facts = mapping(node.get("spec")), [], []
    state: NodeState = "unknown"
    for condition in map(mapping, sequence(mapping(node.get("status")).get("conditions"))):
        if condition.get("type") == "Ready":
            state = _STATES.get(str(condition.get("status")), "unknown")
            said = text(condition.get("message")) or text(condition.get("reason"))
            facts.append(FoundFact("ready", state, _NODE, "status.conditions Ready"))
            if state != "ready":
                doubts.append(Doubt("node-not-ready", "ready", f"{state}: {said}"[:200]))
    if spec.get("unschedulable") is True:
        facts.append(FoundFact("cordoned", "true", _NODE, "spec.unschedulable"))
        doubts.append(Doubt("cordoned-in-cluster", "", "spec.unschedulable"))
    taints = [_taint(each) for each in map(mapping, sequence(spec.get("taints")))]
    kept_off = sorted({taint for taint in taints if taint})
    facts += [FoundFact("taint", taint, _NODE, "spec.taints") for taint in kept_off[:8]]
    if kept_off:
        doubts.append(Doubt("tainted", "", ", ".join(kept_off)[:200]))
    return state, doubts, facts


def _taint(taint: Mapping[str, Any]) -> str:
    """A taint that keeps engines away, as people write it; empty for the cluster's own ones.

    Those under `node.kubernetes.io` repeat conditions of the node. A vendor's own taint keeps
    everything else off its nodes, and what is rendered for the vendor tolerates it.
    """
    key, effect = text(taint.get("key")), text(taint.get("effect"))
    is_known = "node.kubernetes.io" in key or names.vendor_of_resource(key) is not None
    if not key or is_known or effect not in ("NoSchedule", "NoExecute"):
        return ""
    value = text(taint.get("value"))
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _chosen(said: Mapping[str, _Said], planned: str) -> _Said | None:
    """The planned vendor's devices if there are any, else those of the vendor with the most."""
    if planned in said:
        return said[planned]
    return max(said.values(), key=lambda each: (_count(each) or 0, each.vendor), default=None)


def _count(said: _Said) -> int | None:
    counts = [count for _source, count in _counts(said)]
    return counts[0] if counts else None


def _counts(said: _Said) -> list[tuple[str, int]]:
    """How many whole devices each source speaks of, best source first.

    Where devices are cut into slices, the resource and the labels count slices and what is left.
    """
    counts: list[tuple[str, int]] = []
    if said.published and said.published.devices:
        counts.append((_SLICE, len(said.published.devices)))
    is_cut = bool(said.partitions) or said.labels.partition is not None
    replicas = said.labels.replicas or 1
    if said.capacity and not is_cut and said.capacity % replicas == 0:
        counts.append((_RESOURCE, said.capacity // replicas))
    if said.labels.count and said.labels.partition is None:
        counts.append((_LABEL, said.labels.count))
    return counts


def _usable(said: _Said) -> int | None:
    if said.published and said.published.devices:
        return len(said.published.devices) - _out_of_use(said.published)
    is_cut = bool(said.partitions) or said.labels.partition is not None
    if said.allocatable is None or is_cut:
        return None
    return said.allocatable // (said.labels.replicas or 1)


def _out_of_use(published: Published) -> int:
    return sum(device.health != "healthy" for device in published.devices)


def _model(said: _Said) -> str:
    devices = said.published.devices if said.published else ()
    return next((device.name for device in devices if device.name), said.labels.model or "")


def _memory(said: _Said) -> int | None:
    devices = said.published.devices if said.published else ()
    sizes = (device.memory_total_mib for device in devices if device.memory_total_mib)
    return next(sizes, said.labels.memory_mib if said.labels.partition is None else None)


def _doubts(said: _Said) -> list[Doubt]:
    doubts = [*_disagreements(said)]
    if said.partitions or said.labels.partition:
        cut = sorted({*said.partitions, *filter(None, [said.labels.partition])})
        doubts.append(Doubt("partitioned", "", ", ".join(cut)[:200]))
    if said.labels.replicas:
        doubts.append(Doubt("shared", "", f"x{said.labels.replicas}"))
    if said.unread:
        doubts.append(Doubt("unreadable", "", "; ".join(said.unread)[:200]))
    return doubts


def _disagreements(said: _Said) -> list[Doubt]:
    counts = _counts(said)
    parts = []
    if len({count for _source, count in counts}) > 1:
        parts.append(("count", [f"{source} {count}" for source, count in counts]))
    devices = said.published.devices if said.published else ()
    if devices and said.labels.partition is None:
        label, model = said.labels.model, _model(said)
        slugs = {names.model_named(said.vendor, name) for name in (label, model) if name}
        if label and model and len(slugs) == 2 and None not in slugs:
            parts.append(("model", [f"{_SLICE} {model}", f"{_LABEL} {label}"]))
        size, other = _memory(said), said.labels.memory_mib
        if size and other and abs(size - other) > MEMORY_TOLERANCE * max(size, other):
            parts.append(("memory_mib", [f"{_SLICE} {size}", f"{_LABEL} {other}"]))
    return [
        Doubt("sources-disagree", "", f"{what}: {', '.join(said)}"[:200])
        for what, said in parts[:1]
    ]


def _named(said: _Said) -> str:
    count = _count(said)
    return f"{count} x {said.vendor}" if count else said.vendor


def _labels(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(node.get("metadata")).get("labels"))


def _name(node: Mapping[str, Any]) -> str:
    return text(mapping(node.get("metadata")).get("name"), most=253)
