"""Reads and checks the files of facts; a wrong file is refused with the place of the mistake."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
CONFIDENCES = ("measured", "vendor", "secondary", "derived", "estimate", "claimed", "unverified")
EVIDENCES = ("first-party", "third-party", "mixed", "unknown")
FIGURES = (
    "memory_bytes",
    "bandwidth_bytes_per_second",
    "bf16_tflops",
    "fp8_tflops",
    "fp4_tflops",
    "int8_tops",
    "tdp_watts",
    "link_bytes_per_second",
    "network_bytes_per_second",
)


class FactsError(Exception):
    """A file of facts is wrong; the message says where and what is allowed."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with where it comes from. `value` None: nobody published it."""

    value: float | None
    source: str
    confidence: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class AcceleratorFacts:
    """What is known about a model of accelerator."""

    slug: str
    vendor: str
    name: str
    reported_names: tuple[str, ...]
    figures: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of an exporter. `name` None: the exporter does not offer it."""

    name: str | None
    unit: str | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class VendorFacts:
    """What a vendor's own software exposes."""

    slug: str
    name: str
    resources: tuple[tuple[str, str], ...]
    """Kubernetes resource names with what each stands for."""
    dra_driver: str | None
    """Name under which its driver publishes ResourceSlices; None: no such driver is known."""
    device_classes: tuple[str, ...]
    """Classes that its driver brings for claims, the one of whole devices first."""
    images: tuple[str, ...]
    """Repositories of engine images, without tags; empty: none is public, or none is known."""
    tolerations: tuple[str, ...]
    """Keys of taints that the vendor's own manifests tolerate; empty: none is known."""
    model_label: str | None
    memory_label: str | None
    memory_unit_in_label: str | None
    count_label: str | None
    exporter: str | None
    """None: no exporter of the vendor is known."""
    exporter_port: int | None
    metrics: Mapping[str, Metric]
    error_metrics: tuple[str, ...]
    device_labels: tuple[str, ...]
    container_env: str | None
    process_env: str | None
    evidence: str
    sources: tuple[str, ...]


@cache
def accelerators() -> tuple[AcceleratorFacts, ...]:
    """All models of accelerators that ship, in the order of the file."""
    return read_accelerators(_load(FOLDER / "accelerators.yaml"))


@cache
def vendors() -> Mapping[str, VendorFacts]:
    """What ships about each vendor, by slug."""
    return {facts.slug: facts for facts in read_vendors(_load(FOLDER / "vendors.yaml"))}


@cache
def model_by_reported_name() -> Mapping[tuple[str, str], str]:
    """Slug of the model by (vendor, name as the vendor's tool prints it, lower case)."""
    return {
        (facts.vendor, name.lower()): facts.slug
        for facts in accelerators()
        for name in facts.reported_names
    }


def read_accelerators(content: Mapping[str, Any]) -> tuple[AcceleratorFacts, ...]:
    """Check and convert the content of `accelerators.yaml`. Raises FactsError."""
    sources: Mapping[str, str] = content["sources"]
    found = tuple(_accelerator(entry, sources) for entry in content["accelerator_models"])
    _unique([facts.slug for facts in found], "accelerator_models")
    return found


def read_vendors(content: Mapping[str, Any]) -> tuple[VendorFacts, ...]:
    """Check and convert the content of `vendors.yaml`. Raises FactsError."""
    found = tuple(_vendor(entry) for entry in content["vendors"])
    _unique([facts.slug for facts in found], "vendors")
    return found


def _load(path: Path) -> Mapping[str, Any]:
    content: Mapping[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    if content.get("schema_version") != 1:
        raise FactsError(f"{path.name}: schema_version is not 1.")
    return content


def _accelerator(entry: Mapping[str, Any], sources: Mapping[str, str]) -> AcceleratorFacts:
    slug = entry["slug"]
    figures = dict(_figures(slug, entry["figures"], sources))
    return AcceleratorFacts(
        slug=slug,
        vendor=entry["vendor"],
        name=entry["name"],
        reported_names=tuple(entry["reported_names"]),
        figures=figures,
    )


def _figures(
    slug: str, figures: Mapping[str, Mapping[str, Any]], sources: Mapping[str, str]
) -> Iterator[tuple[str, Figure]]:
    for name, figure in figures.items():
        place = f"{slug}.{name}"
        _one_of(name, FIGURES, place)
        _one_of(figure["confidence"], CONFIDENCES, f"{place}.confidence")
        _one_of(figure["source"], tuple(sources), f"{place}.source")
        value = figure["value"]
        if value is not None and not value > 0:
            raise FactsError(f"{place}: {value!r} is not above 0. Unknown is written as null.")
        yield (
            name,
            Figure(
                value=value,
                source=sources[figure["source"]],
                confidence=figure["confidence"],
                note=figure.get("note", ""),
            ),
        )


def _vendor(entry: Mapping[str, Any]) -> VendorFacts:
    slug, metrics = entry["vendor"], entry["metrics"]
    _one_of(entry["evidence"], EVIDENCES, f"{slug}.evidence")
    return VendorFacts(
        slug=slug,
        name=entry["name"],
        resources=tuple((item["name"], item["what"]) for item in entry["resources"]),
        dra_driver=(entry.get("dra") or {}).get("driver"),
        device_classes=tuple((entry.get("dra") or {}).get("device_classes", ())),
        images=tuple(entry.get("runtime_images", ())),
        tolerations=tuple(entry.get("tolerations", ())),
        model_label=entry.get("model_label"),
        memory_label=entry.get("memory_label"),
        memory_unit_in_label=entry.get("memory_unit_in_label"),
        count_label=entry.get("count_label"),
        exporter=entry["exporter"],
        exporter_port=entry["exporter_port"],
        metrics={
            concept: Metric(
                name=metric["name"], unit=metric.get("unit"), note=metric.get("note", "")
            )
            for concept, metric in metrics.items()
            if isinstance(metric, Mapping)
        },
        error_metrics=tuple(metrics.get("errors", ())),
        device_labels=tuple(metrics.get("device_labels", ())),
        container_env=entry.get("container_env"),
        process_env=entry.get("process_env"),
        evidence=entry["evidence"],
        sources=tuple(entry["source"]),
    )


def _one_of(value: str, allowed: Sequence[str], place: str) -> None:
    if value not in allowed:
        raise FactsError(f"{place}: {value!r} is not allowed. Allowed: {', '.join(allowed)}.")


def _unique(values: Sequence[str], place: str) -> None:
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise FactsError(f"{place}: listed twice: {', '.join(twice)}.")
