"""What may be fitted of a profile, as factors on where it starts (usually the card's roofline)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from routing.simulator.profiles import Profile

Coefficient = Literal[
    "mfu",
    "step_seconds",
    "step_seconds_of_experts",
    "step_seconds_per_sequence",
    "step_seconds_per_context_token",
    "kv_tokens",
]


def scaled(profile: Profile, factors: Mapping[Coefficient, float]) -> Profile:
    """The profile with coefficients multiplied; what is not named stays."""

    def by(name: Coefficient) -> float:
        return factors.get(name, 1.0)

    return replace(
        profile,
        step_seconds=profile.step_seconds * by("step_seconds"),
        step_seconds_of_experts=profile.step_seconds_of_experts * by("step_seconds_of_experts"),
        step_seconds_per_sequence=profile.step_seconds_per_sequence
        * by("step_seconds_per_sequence"),
        step_seconds_per_context_token=profile.step_seconds_per_context_token
        * by("step_seconds_per_context_token"),
        prefill_seconds_per_token=profile.prefill_seconds_per_token / by("mfu"),
        prefill_seconds_per_token_and_context=profile.prefill_seconds_per_token_and_context
        / by("mfu"),
        kv_tokens=round(profile.kv_tokens * by("kv_tokens")),
    )
