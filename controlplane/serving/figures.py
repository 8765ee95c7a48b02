"""From rows of accelerators and models to the values that the routing core computes with."""

from typing import TYPE_CHECKING

from routing.core.document import SpeedPrior
from routing.core.roofline import AcceleratorFigures, ModelShape, kv_capacity_tokens, speed_prior

if TYPE_CHECKING:
    from controlplane.serving.models import Model
    from inventory.models import AcceleratorModel

BATCH = 32
CONTEXT_TOKENS = 3050
"""Batch and context for which decode speed is quoted: mean context of a 2,500-token prompt with
1,000 tokens of output, at a batch that every vendor's engine held in published runs."""


def accelerator_figures(accelerator: "AcceleratorModel") -> AcceleratorFigures | None:
    """Figures of one accelerator; None if one of them is unknown."""
    tflops, memory = accelerator.bf16_tflops, accelerator.memory_bytes
    bandwidth = accelerator.bandwidth_bytes_per_second
    if tflops is None or memory is None or bandwidth is None:
        return None
    return AcceleratorFigures(
        peak_tflops=tflops, memory_bytes=memory, bandwidth_bytes_per_second=float(bandwidth)
    )


def model_shape(model: "Model") -> ModelShape:
    """Shape of a model as the roofline takes it."""
    return ModelShape(
        layers=model.layers,
        hidden=model.hidden,
        kv_bytes_per_token=model.kv_bytes_per_token,
        weight_bytes=model.weight_bytes,
        flops_per_token=model.flops_per_token,
        attention_flops_per_token_per_context_token=(
            model.attention_flops_per_token_per_context_token
        ),
    )


def prior(accelerator: "AcceleratorModel", model: "Model") -> SpeedPrior | None:
    """Expected speeds of the pair; None if a figure is unknown."""
    figures = accelerator_figures(accelerator)
    return None if figures is None else speed_prior(figures, model_shape(model))


def capacity_tokens(
    accelerator: "AcceleratorModel", model: "Model", memory_share: float | None
) -> int | None:
    """Tokens of KV beside the weights; None if memory is unknown, 0 if the weights do not fit."""
    figures = accelerator_figures(accelerator)
    if figures is None:
        return None
    if memory_share is None:
        return kv_capacity_tokens(figures, model_shape(model))
    return kv_capacity_tokens(figures, model_shape(model), memory_share=memory_share)


def decode_tokens_per_second(speeds: SpeedPrior) -> float:
    """Output tokens per second of one accelerator at BATCH sequences of CONTEXT_TOKENS."""
    step = (
        speeds.step_seconds
        + BATCH * speeds.step_seconds_per_sequence
        + BATCH * CONTEXT_TOKENS * speeds.step_seconds_per_context_token
    )
    return BATCH / step


def speed_class(accelerator_slug: str, model_slug: str) -> str:
    """Name of the class that endpoints of one accelerator model and one model share."""
    return f"{accelerator_slug}/{model_slug}"
