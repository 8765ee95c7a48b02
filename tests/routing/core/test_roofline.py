"""Speed priors from data sheets against published measurements of granite-4.1-8b."""

import pytest

from routing.core.roofline import (
    AcceleratorFigures,
    ModelShape,
    kv_capacity_tokens,
    speed_prior,
)

GRANITE = ModelShape(
    layers=40,
    hidden=4096,
    kv_bytes_per_token=163_840,
    weight_bytes=17_580_000_000,
    flops_per_token=16.76e9,
    attention_flops_per_token_per_context_token=655_360,
)
H100_NVL = AcceleratorFigures(
    peak_tflops=835, memory_bytes=94_000_000_000, bandwidth_bytes_per_second=3.9e12
)
MI325X = AcceleratorFigures(
    peak_tflops=1307, memory_bytes=256_000_000_000, bandwidth_bytes_per_second=6.0e12
)
GAUDI3 = AcceleratorFigures(
    peak_tflops=1835, memory_bytes=128_000_000_000, bandwidth_bytes_per_second=3.7e12
)


@pytest.mark.parametrize(
    ("accelerator", "intercept_ms", "slope_ms"),
    [
        pytest.param(H100_NVL, 6.1, 0.30, id="h100-nvl"),
        pytest.param(MI325X, 6.0, 0.23, id="mi325x"),
    ],
)
def test_decode_is_within_a_fifth_of_the_published_fits(
    accelerator: AcceleratorFigures, intercept_ms: float, slope_ms: float
) -> None:
    prior = speed_prior(accelerator, GRANITE)

    slope = prior.step_seconds_per_sequence + 3050 * prior.step_seconds_per_context_token
    assert 1000 * prior.step_seconds == pytest.approx(intercept_ms, rel=0.2)
    assert 1000 * slope == pytest.approx(slope_ms, rel=0.2)


@pytest.mark.parametrize(
    ("accelerator", "seconds"),
    [(H100_NVL, 0.498), (MI325X, 0.419), (GAUDI3, 0.332)],
    ids=["h100-nvl", "mi325x", "gaudi3"],
)
def test_prefill_is_within_two_fifths_of_a_published_miss(
    accelerator: AcceleratorFigures, seconds: float
) -> None:
    prior = speed_prior(accelerator, GRANITE)

    assert 7545 / prior.prefill_tokens_per_second == pytest.approx(seconds, rel=0.4)


@pytest.mark.parametrize(
    ("accelerator", "tokens"),
    [(H100_NVL, 380_249), (MI325X, 1_220_703)],
    ids=["h100-nvl", "mi325x"],
)
def test_kv_capacity_is_the_published_estimate(
    accelerator: AcceleratorFigures, tokens: int
) -> None:
    assert kv_capacity_tokens(accelerator, GRANITE) == pytest.approx(tokens, rel=0.01)


def test_a_model_that_does_not_fit_has_no_capacity() -> None:
    small = AcceleratorFigures(
        peak_tflops=100, memory_bytes=16_000_000_000, bandwidth_bytes_per_second=1e12
    )

    assert kv_capacity_tokens(small, GRANITE) == 0


def test_better_figures_never_make_a_slower_endpoint() -> None:
    better = AcceleratorFigures(
        peak_tflops=2 * H100_NVL.peak_tflops,
        memory_bytes=H100_NVL.memory_bytes,
        bandwidth_bytes_per_second=2 * H100_NVL.bandwidth_bytes_per_second,
    )

    fast, slow = speed_prior(better, GRANITE), speed_prior(H100_NVL, GRANITE)

    assert fast.prefill_tokens_per_second == 2 * slow.prefill_tokens_per_second
    assert fast.step_seconds < slow.step_seconds
    assert fast.step_seconds_per_context_token < slow.step_seconds_per_context_token
