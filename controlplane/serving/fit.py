"""Does a model fit on accelerators, and how many sequences at a time; pure arithmetic.

Per accelerator of an engine: `memory x share - weights - reserve` is left for KV.

- Weights are split evenly over tensor parallel accelerators; a pipeline stage holds the share of
  the layers of its largest stage.
- KV heads are split over tensor parallel accelerators as far as there are some: beyond that each
  holds one, and latent KV (MLA) is kept whole on every one. Layers with a sliding window keep the
  window and one block. KV is counted in whole blocks.
- The reserve is what an engine's own measurement at its start takes beside the weights:
  activations 5.5 GiB, with experts 8 GiB, per engine, and 0.15 GiB outside of the framework's
  allocator, 0.6 GiB per accelerator of a parallel one (BLIS, github inference-sim/inference-sim
  @f90a1e3a). With it, Qwen3-32B on two H100 SXM at a share of 0.95 comes out 12 % above the
  307,328 tokens of KV that llm-d's precise prefix guide states. Small models take less.

The engine measures again when it starts: this says what to try, not what will be.
"""

import math
from dataclasses import dataclass
from typing import Literal

from controlplane.serving.shapes import Architecture, kv_values_per_token

Verdict = Literal["fits", "tight", "too_small", "not_divisible", "unknown"]
GIB = 1024**3
ACTIVATION_BYTES, EXPERT_ACTIVATION_BYTES = int(5.5 * GIB), 8 * GIB
ALONE_BYTES, PARALLEL_BYTES = int(0.15 * GIB), int(0.6 * GIB)
KV_BYTES = {"bf16": 2, "fp16": 2, "fp8": 1}
"""Bytes of one value in the cache."""
DEGREES = (1, 2, 4, 8, 16)
"""Tensor parallel sizes that are tried for the smallest one that fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What a model takes, over all accelerators; None is unknown."""

    weight_bytes: int | None
    layers: int
    heads: int | None
    kv_heads: int | None
    """None: the cache is latent and cannot be split."""
    kv_bytes_per_token_and_layer: int | None
    window: int | None = None
    window_layers: int = 0
    has_experts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What an engine shall hold at a time."""

    context_tokens: int
    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Accelerators of one engine."""

    memory_bytes: int | None
    share: float
    """Share of the memory that the engine may use, 0 to 1."""
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    block_tokens: int = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The verdict with its figures, per accelerator unless said otherwise."""

    verdict: Verdict
    usable_bytes: int | None = None
    weight_bytes: int | None = None
    reserve_bytes: int | None = None
    kv_bytes: int | None = None
    """Left for KV; 0 when weights and reserve take it all."""
    kv_bytes_per_sequence: int | None = None
    sequences: int | None = None
    """Sequences of the whole context that the engine holds at a time."""
    kv_tokens: int | None = None
    """Tokens of KV that the engine holds in such sequences."""


def footprint_of(shape: Architecture, *, weight_bytes: int | None, kv_dtype: str) -> Footprint:
    """What a model of that shape takes."""
    values, size = kv_values_per_token(shape), KV_BYTES.get(kv_dtype)
    return Footprint(
        weight_bytes=weight_bytes,
        layers=shape.layers,
        heads=shape.heads,
        kv_heads=None if shape.latent is not None else shape.kv_heads,
        kv_bytes_per_token_and_layer=None if values is None or size is None else values * size,
        window=shape.window,
        window_layers=shape.window_layers if shape.window is not None else 0,
        has_experts=shape.experts > 0,
    )


def sequence_bytes(model: Footprint, place: Place, context_tokens: int) -> int | None:
    """KV of one sequence on one accelerator; None if the cache's shape is unknown."""
    whole = model.kv_bytes_per_token_and_layer
    if whole is None:
        return None
    if model.kv_heads is None:
        part = whole
    else:
        part = whole // model.kv_heads * math.ceil(model.kv_heads / place.tensor_parallel)
    block = place.block_tokens
    tokens = math.ceil(context_tokens / block) * block
    seen = tokens
    if model.window is not None:
        seen = min(tokens, math.ceil(model.window / block) * block + block)
    token_layers = (model.layers - model.window_layers) * tokens + model.window_layers * seen
    return _stage_part(part * token_layers, model, place)


def fit(model: Footprint, place: Place, load: Load) -> Fit:
    """Whether the engine holds the load; see the module for the formulas."""
    if model.heads is not None and model.heads % place.tensor_parallel:
        return Fit(verdict="not_divisible")
    sequence = sequence_bytes(model, place, load.context_tokens)
    if place.memory_bytes is None or model.weight_bytes is None or sequence is None:
        return Fit(verdict="unknown", kv_bytes_per_sequence=sequence)
    usable = int(place.memory_bytes * place.share)
    weights = -(-_stage_part(model.weight_bytes, model, place) // place.tensor_parallel)
    reserve = _reserve(model, place)
    free = max(0, usable - weights - reserve)
    sequences = free // sequence
    return Fit(
        verdict=_verdict(sequences, load.concurrency),
        usable_bytes=usable,
        weight_bytes=weights,
        reserve_bytes=reserve,
        kv_bytes=free,
        kv_bytes_per_sequence=sequence,
        sequences=sequences,
        kv_tokens=sequences * load.context_tokens,
    )


def smallest_tensor_parallel(model: Footprint, place: Place, load: Load) -> int | None:
    """Fewest accelerators over which the load fits; None if none of DEGREES is known to do."""
    for degree in DEGREES:
        tried = Place(
            memory_bytes=place.memory_bytes,
            share=place.share,
            tensor_parallel=degree,
            block_tokens=place.block_tokens,
        )
        if fit(model, tried, load).verdict == "fits":
            return degree
    return None


def _verdict(sequences: int, concurrency: int) -> Verdict:
    if sequences >= concurrency:
        return "fits"
    return "tight" if sequences else "too_small"


def _stage_part(amount: int, model: Footprint, place: Place) -> int:
    """What the largest pipeline stage has of something that all layers share evenly, rounded up."""
    layers = math.ceil(model.layers / place.pipeline_parallel)
    return -(-amount * layers // model.layers)


def _reserve(model: Footprint, place: Place) -> int:
    count = place.tensor_parallel * place.pipeline_parallel
    activation = EXPERT_ACTIVATION_BYTES if model.has_experts else ACTIVATION_BYTES
    return activation // count + (ALONE_BYTES if count == 1 else PARALLEL_BYTES)
