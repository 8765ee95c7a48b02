"""First guess of an endpoint's speed and KV capacity from data sheets, before anything is measured.

Decode reads all weights once per step and each sequence's KV once; prefill is bound by arithmetic.
Defaults and their sources:

- `PREFILL_MFU` 0.30: a 7,500-token miss of granite-4.1-8b took 0.498 s on H100-NVL, 0.419 s on
  MI325X and 0.332 s on Gaudi 3, that is 0.33, 0.25 and 0.23 of the dense bf16 peak with queueing
  included (lower bounds); Qwen3-32B TP2 on H100 reached 0.57 to 0.74 alone.
- `BANDWIDTH_SHARE` 0.80, `OVERHEAD_SECONDS` 1.5 ms per step (launch and scheduling) and
  `SEQUENCE_SECONDS` 0.1 ms per sequence and step (sampling, bookkeeping): chosen together, so that
  granite-4.1-8b decode comes within 20 % of the published fits on H100-NVL (5.9 to 6.3 ms + 0.29
  to 0.32 ms per sequence at 3,050 tokens of context) and on MI325X (6.0 ms + 0.23 ms).
- `MEMORY_SHARE` 0.85: vLLM's share of device memory in the same runs.

They are where learning starts: the router's own observations replace them within some requests.
"""

from dataclasses import dataclass

from routing.core.document import SpeedPrior

PREFILL_MFU = 0.30
BANDWIDTH_SHARE = 0.80
OVERHEAD_SECONDS = 1.5e-3
SEQUENCE_SECONDS = 0.1e-3
MEMORY_SHARE = 0.85
REFERENCE_PROMPT_TOKENS = 4096
"""Prompt length for the attention part of prefill; a token sees half of it on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorFigures:
    """Sums over the accelerators of one endpoint (tensor parallel ones add up)."""

    peak_tflops: float
    """Dense, at the precision of the weights."""
    memory_bytes: int
    bandwidth_bytes_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """What a model costs; MoE models count active parameters in `flops_per_token`."""

    layers: int
    hidden: int
    kv_bytes_per_token: int
    weight_bytes: int
    flops_per_token: float
    attention_flops_per_token_per_context_token: float


def speed_prior(
    accelerator: AcceleratorFigures,
    model: ModelShape,
    *,
    mfu: float = PREFILL_MFU,
    bandwidth_share: float = BANDWIDTH_SHARE,
    overhead_seconds: float = OVERHEAD_SECONDS,
) -> SpeedPrior:
    """Expected speeds of the class (accelerator x model); see the module for the constants."""
    flops = (
        model.flops_per_token
        + model.attention_flops_per_token_per_context_token * REFERENCE_PROMPT_TOKENS / 2
    )
    bandwidth = accelerator.bandwidth_bytes_per_second * bandwidth_share
    return SpeedPrior(
        prefill_tokens_per_second=accelerator.peak_tflops * 1e12 * mfu / flops,
        step_seconds=model.weight_bytes / bandwidth + overhead_seconds,
        step_seconds_per_sequence=SEQUENCE_SECONDS,
        step_seconds_per_context_token=model.kv_bytes_per_token / bandwidth,
        kv_bytes_per_token=model.kv_bytes_per_token,
    )


def kv_capacity_tokens(
    accelerator: AcceleratorFigures, model: ModelShape, *, memory_share: float = MEMORY_SHARE
) -> int:
    """Tokens of KV that fit beside the weights; 0 when the weights alone do not fit."""
    free = accelerator.memory_bytes * memory_share - model.weight_bytes
    return max(0, int(free // model.kv_bytes_per_token))
