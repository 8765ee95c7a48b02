"""Shipped presets: a model's published shape, its checkpoints and arguments; no query here."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from controlplane.serving import facts, shapes
from controlplane.serving.fit import Footprint, footprint_of
from controlplane.serving.shapes import Architecture, architecture_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A model that ships with the product, and what is known of it; None is unknown."""

    slug: str
    family: str
    name: str
    source: str
    confidence: str
    licence: str | None
    gated: bool | None
    """True when its publisher asks for consent before it can be loaded."""
    max_model_len: int | None
    published_parameters: int | None
    architecture: Architecture
    checkpoints: Mapping[str, str]
    """Name of the weights by precision."""
    arguments: Mapping[str, Mapping[str, Any]]
    """Arguments worth setting for this model, by engine."""

    @property
    def precision(self) -> str:
        """The precision in which it is published first."""
        return next(iter(self.checkpoints))

    @property
    def parameters(self) -> int | None:
        """Counted from the shape, else as published."""
        counted = shapes.parameters(self.architecture)
        return counted.total if counted else self.published_parameters

    @property
    def billions(self) -> float | None:
        """Parameters in billions, as people name them."""
        return None if self.parameters is None else self.parameters / 1e9

    def weight_bytes(self, precision: str) -> int | None:
        """Bytes of the weights in a precision; None if unknown."""
        return shapes.weight_bytes(self.architecture, precision, self.published_parameters)

    def footprint(self, *, precision: str, kv_dtype: str = "bf16") -> Footprint:
        """What it takes on accelerators."""
        return footprint_of(
            self.architecture, weight_bytes=self.weight_bytes(precision), kv_dtype=kv_dtype
        )


@cache
def presets() -> dict[str, Preset]:
    """Every shipped preset by its short name."""
    content = facts.load("presets")
    sources = content["sources"]
    return {row["slug"]: _preset(row, sources) for row in content["presets"]}


def model_fields(preset: Preset) -> dict[str, Any] | None:
    """Fields of a row of the catalogue; None if a figure that a row needs is not published."""
    shape, precision = preset.architecture, preset.precision
    values = shapes.kv_values_per_token(shape)
    counted = shapes.parameters(shape)
    per_context = shapes.attention_flops(shape)
    weights = preset.weight_bytes(precision)
    known = (values, counted, per_context, weights, preset.max_model_len, shape.hidden)
    if counted is None or values is None or any(figure is None for figure in known):
        return None
    return {
        "slug": preset.slug,
        "name": preset.checkpoints[precision],
        "precision": precision,
        "max_model_len": preset.max_model_len,
        "layers": shape.layers,
        "hidden": shape.hidden,
        "kv_heads": None if shape.latent else shape.kv_heads,
        "head_size": None if shape.latent else shape.head_size,
        # A 2-byte cache in which every layer sees every token: the most that it can be.
        "kv_bytes_per_token": values * 2 * shape.layers,
        "weight_bytes": weights,
        "flops_per_token": 2.0 * counted.active,
        "attention_flops_per_token_per_context_token": per_context,
        "shape": {name: value for name, value in _plain(shape).items() if value not in (None, 0)},
        "source": preset.source[:300],
        "confidence": preset.confidence,
    }


def _preset(row: Mapping[str, Any], sources: Mapping[str, str]) -> Preset:
    return Preset(
        slug=row["slug"],
        family=row["family"],
        name=row["name"],
        source=sources[row["source"]],
        confidence=row["confidence"],
        licence=row["licence"],
        gated=row.get("gated"),
        max_model_len=row["max_model_len"],
        published_parameters=row.get("parameters"),
        architecture=architecture_of(row["shape"]),
        checkpoints=row["checkpoints"],
        arguments=row["arguments"],
    )


def _plain(shape: Architecture) -> dict[str, Any]:
    """What a row's `shape` says beside its columns."""
    return {
        "heads": shape.heads,
        "ffn": shape.ffn,
        "vocab": shape.vocab,
        "tied_embeddings": shape.tied_embeddings,
        "experts": shape.experts,
        "top_k": shape.top_k,
        "moe_intermediate": shape.moe_intermediate,
        "window": shape.window,
        "window_layers": shape.window_layers,
    }
