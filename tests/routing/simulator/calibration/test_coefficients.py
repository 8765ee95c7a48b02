"""Factors change what they name, and nothing else."""

import pytest

from routing.simulator.calibration.coefficients import scaled
from routing.simulator.profiles import load_profile

PROFILE = load_profile("amd-mi325x", "sarvam-30b")


def test_nothing_named_changes_nothing() -> None:
    assert scaled(PROFILE, {}) == PROFILE


def test_a_higher_mfu_computes_prompts_faster_and_decodes_as_before() -> None:
    fast = scaled(PROFILE, {"mfu": 2.0})

    assert fast.prefill_seconds(2048, 500) == pytest.approx(PROFILE.prefill_seconds(2048, 500) / 2)
    assert fast.decode_seconds(8, 9000) == PROFILE.decode_seconds(8, 9000)


def test_each_part_of_a_step_has_its_factor() -> None:
    slow = scaled(
        PROFILE,
        {
            "step_seconds": 3.0,
            "step_seconds_of_experts": 3.0,
            "step_seconds_per_sequence": 3.0,
            "step_seconds_per_context_token": 3.0,
            "kv_tokens": 0.5,
        },
    )

    assert slow.decode_seconds(8, 9000) == pytest.approx(3 * PROFILE.decode_seconds(8, 9000))
    assert slow.kv_tokens == pytest.approx(PROFILE.kv_tokens / 2, abs=1)
