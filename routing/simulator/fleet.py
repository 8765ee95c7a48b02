"""Pools to simulate: the pool document an operator would have, and what the engines really are.

The document knows data sheets only (`routing.core.roofline`), as a real pool does at its start; the
engines follow calibrated profiles. What the router believes of them it has to learn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from routing.core.document import (
    Admission,
    EndpointSpec,
    KvContract,
    ModelSpec,
    Policy,
    PoolDocument,
    PromptIdentity,
    Role,
    Slo,
    SpeedPrior,
)
from routing.core.roofline import AcceleratorFigures, ModelShape, speed_prior
from routing.simulator.profiles import Profile, load_figures, load_profile
from routing.simulator.requests import BLOCK_TOKENS

PATIENCE_SECONDS = 3600.0
"""Published baselines queue without end; a pool that refuses states its own bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Equal replicas."""

    accelerator: str
    count: int
    role: Role = "both"
    speed: float = 1.0
    """Of the class's; what the document does not know."""
    max_sequences: int = 256
    price_per_hour: str | None = None
    """Of one replica, Decimal as text."""
    watts: float | None = None
    profile: Profile | None = None
    """Of these replicas, where `profiles.yaml` has none for the accelerator and the model."""
    prior: SpeedPrior | None = None
    """What the document says of a `profile` of one's own."""
    speed_class: str = ""
    """The accelerator's name when empty."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """A pool and its engines."""

    document: PoolDocument
    profiles: Mapping[str, Profile]
    """By endpoint id."""
    speeds: Mapping[str, float]
    """Of those that are not as fast as their class."""

    def in_currency(self, currency: str) -> "Fleet":
        """The same pool, whose prices are in a currency (ISO 4217)."""
        return replace(self, document=msgspec.structs.replace(self.document, currency=currency))


def build_fleet(
    members: Sequence[Member],
    *,
    model: str,
    block_tokens: int = BLOCK_TOKENS,
    policy: Policy | None = None,
    slo: Slo | None = None,
    admission: Admission | None = None,
) -> Fleet:
    """Endpoints are named `class-position`. Raises ProfileError for what is not in the figures."""
    specs: list[EndpointSpec] = []
    profiles: dict[str, Profile] = {}
    priors: dict[str, SpeedPrior] = {}
    speeds: dict[str, float] = {}
    for member in members:
        profile = member.profile or load_profile(member.accelerator, model)
        name = member.speed_class or member.accelerator
        priors[name] = member.prior or _prior(member.accelerator, model)
        for _ in range(member.count):
            spec = _endpoint(member, profile, position=len(specs), block_tokens=block_tokens)
            specs.append(spec)
            profiles[spec.id] = profile
            if member.speed != 1.0:
                speeds[spec.id] = member.speed
    is_split = any(member.role != "both" for member in members)
    document = PoolDocument(
        pool="simulated",
        version=1,
        author="simulator",
        created_at="2026-01-01T00:00:00Z",
        role_mode="disaggregated" if is_split else "unified",
        models=(ModelSpec(name=model, max_model_len=_longest(profiles)),),
        endpoints=tuple(specs),
        speed_classes=priors,
        policy=policy or Policy(),
        slo=slo or Slo(),
        prompt_identity=PromptIdentity(),
        admission=admission or Admission(maximum_wait_seconds=PATIENCE_SECONDS),
    )
    return Fleet(document, profiles, speeds)


def _endpoint(
    member: Member, profile: Profile, *, position: int, block_tokens: int
) -> EndpointSpec:
    vendor = member.accelerator.partition("-")[0]
    return EndpointSpec(
        id=f"{member.accelerator}-{position}",
        url=f"http://10.0.{position // 250}.{position % 250 + 1}:8000",
        instance="1",
        engine="vllm",
        role=member.role,
        vendor=vendor,
        speed_class=member.speed_class or member.accelerator,
        node=f"node-{position}",
        site="site",
        kv_capacity_tokens=profile.kv_tokens,
        block_size_tokens=block_tokens,
        max_sequences=member.max_sequences,
        kv_contract=_contract(vendor, profile),
        price_per_hour=member.price_per_hour,
        watts=member.watts,
    )


def _contract(vendor: str, profile: Profile) -> KvContract:
    # KV between vendors goes through host memory, so that every pair of a model is allowed.
    return KvContract(
        engine="vllm", engine_version="0.32", connector="nixl", connector_version="1",
        transport="nixl", model_revision="main", kv_dtype="bf16", block_size_tokens=16,
        layout="HND", kv_heads=8, head_size=128, tensor_parallel=1, pipeline_parallel=1,
        attention_backend=vendor, fabric="fabric", staging_device="cpu",
        transfer_bytes_per_second=profile.wire_bytes_per_second,
    )  # fmt: skip


def _prior(accelerator: str, model: str) -> SpeedPrior:
    card, shape = load_figures(accelerator, model)
    return speed_prior(
        AcceleratorFigures(
            peak_tflops=card["peak_tflops"],
            memory_bytes=int(card["memory_gb"] * 1e9),
            bandwidth_bytes_per_second=card["bandwidth_tb_s"] * 1e12,
        ),
        ModelShape(
            layers=int(shape["layers"]),
            hidden=int(shape["hidden"]),
            kv_bytes_per_token=int(shape["kv_bytes_per_token"]),
            weight_bytes=int(shape["weight_bytes"]),
            flops_per_token=shape["flops_per_token"],
            attention_flops_per_token_per_context_token=shape[
                "attention_flops_per_token_and_context"
            ],
        ),
    )


def _longest(profiles: Mapping[str, Profile]) -> int:
    return max(profile.max_model_len for profile in profiles.values())
