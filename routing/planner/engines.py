"""How fast an engine of a group is for a model, and whether the model fits.

A calibrated profile where there is one, else the data sheet's roofline (an estimate). Several
accelerators that work together add up, with WIDTH_EFFICIENCY of each lost to talking.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from routing.core.document import SpeedPrior
from routing.core.roofline import (
    OVERHEAD_SECONDS,
    PREFILL_MFU,
    AcceleratorFigures,
    ModelShape,
    kv_capacity_tokens,
    speed_prior,
)
from routing.planner.problem import Card, Demand, Group, Shape
from routing.simulator.profiles import Profile, ProfileError, load_figures, load_profile

WIDTHS = (1, 2, 4, 8)
WIDTH_EFFICIENCY = 0.85
"""Speed of each accelerator that works together with others; an estimate, chosen here."""
LEAST_SEQUENCES = 8
"""Sequences of the traffic's length that an engine must hold; below, it is called too small. The
memory check of change plans uses the same number."""
STAGING_SHARE = 1 / 3
REQUEST_SECONDS, TRANSFER_SETUP_SECONDS, CHUNK_TOKENS = 0.02, 0.002, 2048
"""As in `profiles.yaml`: staging, ttft_fit, network, testbed."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine of `width` accelerators."""

    profile: Profile
    prior: SpeedPrior
    """What a router believes at the start: the data sheet."""
    width: int
    is_estimate: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a model does not run on a group."""

    code: str
    """`refused`, `unknown-figures` or `memory`."""
    detail: str
    needed_bytes: float | None = None
    there_bytes: float | None = None


@lru_cache(maxsize=1024)
def _engine(
    accelerator: str, model: str, width: int, card: Card, shape: Shape, speed: float
) -> Engine:
    prior = speed_prior(_figures(card, width), _shape(shape))
    profile = _measured(accelerator, model, width)
    if profile is None:
        single = _measured(accelerator, model, 1) or _roofline(accelerator, model, card, shape)
        profile = single if width == 1 else _wider(single, card, shape, width)
    if speed != 1.0:
        profile = profile.slower(1 / speed)
    return Engine(profile, prior, width, profile.estimate)


def _measured(accelerator: str, model: str, width: int) -> Profile | None:
    """The profile of such an engine in `profiles.yaml`, where classes of several cards are called
    `<accelerator>-tp<width>`."""
    name = accelerator if width == 1 else f"{accelerator}-tp{width}"
    try:
        return load_profile(name, model)
    except ProfileError:
        return None


def engine_of(group: Group, demand: Demand, width: int) -> Engine | Refusal:
    """The engine, or why there is none."""
    if demand.model in group.refuses:
        return Refusal("refused", group.refuses[demand.model])
    card, shape = card_of(group), shape_of(demand, group)
    if card is None or shape is None:
        return Refusal("unknown-figures", group.accelerator if card is None else demand.model)
    engine = _engine(group.accelerator, demand.model, width, card, shape, group.speed)
    length = demand.traffic.prompt_tokens + demand.traffic.output_tokens
    needed = LEAST_SEQUENCES * length
    if engine.profile.kv_tokens < needed or length > engine.profile.max_model_len:
        return Refusal(
            "memory",
            demand.model,
            needed_bytes=shape.weight_bytes + needed * shape.kv_bytes_per_token,
            there_bytes=card.memory_bytes * width,
        )
    return engine


def widths_of(group: Group) -> tuple[int, ...]:
    """Accelerators that may work together in one node, and leave none over."""
    return tuple(width for width in WIDTHS if group.accelerators_per_node % width == 0)


def card_of(group: Group) -> Card | None:
    """The group's own data sheet, else the one in `profiles.yaml`; `None` if nobody has it."""
    if group.card is not None:
        return group.card
    try:
        # Any model will do: only the card is read.
        card, _ = load_figures(group.accelerator, _ANY_MODEL)
    except ProfileError:
        return None
    return Card(
        peak_tflops=card["peak_tflops"],
        memory_bytes=card["memory_gb"] * 1e9,
        bandwidth_bytes_per_second=card["bandwidth_tb_s"] * 1e12,
        link_bytes_per_second=card["link_gb_s"] * 1e9,
    )


def shape_of(demand: Demand, group: Group) -> Shape | None:
    """The demand's own shape, else the one in `profiles.yaml`; `None` if nobody has it."""
    if demand.shape is not None:
        return demand.shape
    try:
        _, shape = load_figures(_ANY_CARD, demand.model)
    except ProfileError:
        return None
    return Shape(
        layers=int(shape["layers"]),
        hidden=int(shape["hidden"]),
        kv_bytes_per_token=shape["kv_bytes_per_token"],
        weight_bytes=shape["weight_bytes"],
        flops_per_token=shape["flops_per_token"],
        attention_flops_per_token_per_context_token=shape["attention_flops_per_token_and_context"],
        max_model_len=int(shape["max_model_len"]),
    )


_ANY_MODEL, _ANY_CARD = "granite-4.1-8b", "nvidia-h100-nvl"


def _figures(card: Card, width: int) -> AcceleratorFigures:
    share = 1.0 if width == 1 else WIDTH_EFFICIENCY
    return AcceleratorFigures(
        peak_tflops=card.peak_tflops * width * share,
        memory_bytes=int(card.memory_bytes * width),
        bandwidth_bytes_per_second=card.bandwidth_bytes_per_second * width * share,
    )


def _shape(shape: Shape) -> ModelShape:
    return ModelShape(
        layers=shape.layers,
        hidden=shape.hidden,
        kv_bytes_per_token=int(shape.kv_bytes_per_token),
        weight_bytes=int(shape.weight_bytes),
        flops_per_token=shape.flops_per_token,
        attention_flops_per_token_per_context_token=(
            shape.attention_flops_per_token_per_context_token
        ),
    )


def _roofline(accelerator: str, model: str, card: Card, shape: Shape) -> Profile:
    figures = _figures(card, 1)
    prior = speed_prior(figures, _shape(shape))
    flops = figures.peak_tflops * 1e12 * PREFILL_MFU
    return Profile(
        accelerator=accelerator,
        model=model,
        step_seconds=prior.step_seconds,
        step_seconds_per_sequence=prior.step_seconds_per_sequence,
        step_seconds_per_context_token=prior.step_seconds_per_context_token,
        # Apart from each other, where the prior holds half a reference prompt of attention.
        prefill_seconds_per_token=shape.flops_per_token / flops,
        prefill_seconds_per_token_and_context=shape.attention_flops_per_token_per_context_token
        / flops,
        request_overhead_seconds=REQUEST_SECONDS,
        kv_tokens=kv_capacity_tokens(figures, _shape(shape)),
        kv_bytes_per_token=int(shape.kv_bytes_per_token),
        max_model_len=shape.max_model_len,
        max_num_batched_tokens=CHUNK_TOKENS,
        link_bytes_per_second=card.link_bytes_per_second * STAGING_SHARE,
        wire_bytes_per_second=card.link_bytes_per_second,
        transfer_setup_seconds=TRANSFER_SETUP_SECONDS,
        estimate=True,
    )


def _wider(profile: Profile, card: Card, shape: Shape, width: int) -> Profile:
    """The profile of one accelerator for several that work together: an estimate."""
    together = width * WIDTH_EFFICIENCY
    return replace(
        profile,
        step_seconds=OVERHEAD_SECONDS
        + max(0.0, profile.step_seconds - OVERHEAD_SECONDS) / together,
        step_seconds_of_experts=profile.step_seconds_of_experts / together,
        step_seconds_per_context_token=profile.step_seconds_per_context_token / together,
        prefill_seconds_per_token=profile.prefill_seconds_per_token / together,
        prefill_seconds_per_token_and_context=profile.prefill_seconds_per_token_and_context
        / together,
        kv_tokens=kv_capacity_tokens(_figures(card, width), _shape(shape)),
        estimate=True,
    )
