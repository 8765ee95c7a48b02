"""Parameters, bytes of weights and bytes of KV out of a model's published shape; pure arithmetic.

Formulas, per layer unless said otherwise (norms and biases left out, below 0.1 %):

- attention with grouped heads: `hidden x heads x head_size` for queries and for the output,
  `hidden x kv_heads x head_size` for keys and for values (Ainslie et al. 2023, arXiv 2305.13245);
- latent attention (MLA, DeepSeek-V2, arXiv 2405.04434): `hidden x (kv_rank + rope)` down,
  `kv_rank x heads x (nope + value)` up, queries through `q_rank` where there is one, and
  `heads x value x hidden` out;
- gated feed-forward: `3 x hidden x ffn`; experts: the same with their own width, once per expert,
  and `hidden x experts` for the router; embeddings `vocab x hidden`, twice when not tied;
- KV of one token: `2 x kv_heads x head_size` values, with MLA `kv_rank + rope`; a layer with a
  sliding window holds at most the window.

Checked by a test against published totals. State-space layers (Mamba) have no formula here: what
such a model keeps per sequence is not a multiple of its tokens, so its KV is unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BYTES: Mapping[str, float] = {"bf16": 2, "fp16": 2, "fp8": 1, "mxfp4": 4.25 / 8}
"""Bytes of one weight of the linear layers. Block scales of fp8 are below 0.1 %; MXFP4 has an
8-bit scale for 32 weights of 4 bits (OCP Microscaling Formats 1.0)."""
_FULL = 2
"""Embeddings, head and router stay in 16 bits in published quantised checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Ranks and widths of latent attention."""

    kv_rank: int
    rope: int
    q_rank: int | None = None
    nope: int | None = None
    value: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A model's shape as published; None is unknown."""

    layers: int
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_size: int | None = None
    ffn: int | None = None
    vocab: int | None = None
    tied_embeddings: bool | None = None
    experts: int = 0
    top_k: int = 0
    shared_experts: int = 0
    moe_intermediate: int | None = None
    dense_layers: int = 0
    """Leading layers without experts, in a model that has some."""
    latent: Latent | None = None
    window: int | None = None
    """Tokens that a layer with a sliding window sees."""
    window_layers: int = 0
    extra_parameters: int = 0
    """Parameters outside the decoder, as of an image encoder."""
    is_hybrid: bool = False
    """Some layers keep a state and no KV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Parameters by what they are for."""

    attention: int
    dense: int
    """Feed-forward layers and shared experts."""
    experts: int
    router: int
    embeddings: int
    active: int
    """Parameters that take part in one token, embeddings of the input left out."""
    extra: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        parts = (self.attention, self.dense, self.experts, self.router)
        return sum(parts) + self.embeddings + self.extra


def architecture_of(shape: Mapping[str, Any]) -> Architecture:
    """From the fields of a preset's `shape`. Raises TypeError for a field that is not known."""
    latent = shape.get("latent")
    rest = {name: value for name, value in shape.items() if name != "latent"}
    return Architecture(latent=Latent(**latent) if latent else None, **rest)


def parameters(shape: Architecture) -> Parameters | None:
    """Counted by the formulas above; None if a figure that they need is unknown."""
    attention = _attention(shape)
    hidden, vocab = shape.hidden, shape.vocab
    if attention is None or hidden is None or vocab is None or shape.is_hybrid:
        return None
    moe_layers = shape.layers - shape.dense_layers if shape.experts else 0
    plain_layers = shape.layers - moe_layers
    if plain_layers and shape.ffn is None:
        return None
    if moe_layers and shape.moe_intermediate is None:
        return None
    expert = 3 * hidden * (shape.moe_intermediate or 0)
    dense = plain_layers * 3 * hidden * (shape.ffn or 0)
    dense += moe_layers * shape.shared_experts * expert
    router = moe_layers * hidden * shape.experts
    head = vocab * hidden
    # Where nobody says whether they are tied, the larger figure is the safe one.
    embeddings = head if shape.tied_embeddings else 2 * head
    active = shape.layers * attention + dense + router + moe_layers * shape.top_k * expert + head
    return Parameters(
        attention=shape.layers * attention,
        dense=dense,
        experts=moe_layers * shape.experts * expert,
        router=router,
        embeddings=embeddings,
        active=active,
        extra=shape.extra_parameters,
    )


def weight_bytes(shape: Architecture, precision: str, published: int | None = None) -> int | None:
    """Bytes of the weights; None if the shape or the precision is not known well enough.

    `published` parameters stand in where the shape is incomplete. Of MXFP4, only experts are small:
    the rest stays in 16 bits, as in the checkpoints that are published with it.
    """
    size = BYTES.get(precision)
    if size is None:
        return None
    counted = parameters(shape)
    if counted is None:
        # A mixture of sizes needs the parts, and only the sum is known.
        return None if published is None or precision == "mxfp4" else round(published * size)
    full = counted.embeddings + counted.router + counted.extra
    linear = counted.attention + counted.dense
    if precision == "mxfp4":
        return round(counted.experts * size + (full + linear) * _FULL)
    return round((counted.experts + linear) * size + full * _FULL)


def kv_values_per_token(shape: Architecture) -> int | None:
    """Values that one layer keeps of one token, over all KV heads; None if unknown."""
    if shape.is_hybrid:
        return None
    if shape.latent is not None:
        return shape.latent.kv_rank + shape.latent.rope
    if shape.kv_heads is None or shape.head_size is None:
        return None
    return 2 * shape.kv_heads * shape.head_size


def attention_flops(shape: Architecture) -> float | None:
    """FLOP of one query token against one token of context, over all layers.

    Scores and values: `4 x layers x heads x head_size`; latent attention works on the rank
    (`kv_rank + rope` for scores, `kv_rank` for values). None if a figure is unknown.
    """
    if shape.heads is None or shape.is_hybrid:
        return None
    if shape.latent is not None:
        width = 2 * shape.latent.kv_rank + shape.latent.rope
        return 2.0 * shape.layers * shape.heads * width
    return None if shape.head_size is None else 4.0 * shape.layers * shape.heads * shape.head_size


def _attention(shape: Architecture) -> int | None:
    """Parameters of one layer's attention."""
    hidden, heads = shape.hidden, shape.heads
    if hidden is None or heads is None:
        return None
    if shape.latent is not None:
        return _latent_attention(hidden, heads, shape.latent)
    if shape.kv_heads is None or shape.head_size is None:
        return None
    return 2 * hidden * heads * shape.head_size + 2 * hidden * shape.kv_heads * shape.head_size


def _latent_attention(hidden: int, heads: int, latent: Latent) -> int | None:
    if latent.nope is None or latent.value is None:
        return None
    query = heads * (latent.nope + latent.rope)
    rank = latent.q_rank
    queries = hidden * query if rank is None else hidden * rank + rank * query
    keys = hidden * (latent.kv_rank + latent.rope)
    keys += latent.kv_rank * heads * (latent.nope + latent.value)
    return queries + keys + heads * latent.value * hidden
