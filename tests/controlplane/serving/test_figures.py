"""Speeds and capacities from data sheets."""

import pytest

from controlplane.serving import figures
from routing.core import roofline
from tests.controlplane.serving.factories import make_accelerator_model, make_serving_model

pytestmark = pytest.mark.django_db


def test_the_expected_speed_of_a_pair_follows_from_its_figures() -> None:
    speeds = figures.prior(make_accelerator_model(), make_serving_model())

    assert speeds is not None
    # 17.6 GB of weights over a share of 6 TB/s, and the overhead of a step.
    weights = 17.58e9 / (6e12 * roofline.BANDWIDTH_SHARE)
    assert speeds.step_seconds == pytest.approx(weights + roofline.OVERHEAD_SECONDS)
    assert 500 < figures.decode_tokens_per_second(speeds) < 5000


@pytest.mark.parametrize("missing", ["memory_bytes", "bandwidth_bytes_per_second", "bf16_tflops"])
def test_a_figure_that_nobody_published_makes_the_speed_unknown(missing: str) -> None:
    accelerator, model = make_accelerator_model(**{missing: None}), make_serving_model()

    assert figures.prior(accelerator, model) is None
    assert figures.capacity_tokens(accelerator, model, 0.85) is None


def test_capacity_is_what_stays_beside_the_weights() -> None:
    accelerator, model = make_accelerator_model(), make_serving_model()

    tokens = figures.capacity_tokens(accelerator, model, 0.85)

    assert tokens == (256e9 * 0.85 - 17.58e9) // 163_840


def test_a_class_is_named_after_accelerator_and_model() -> None:
    assert figures.speed_class("amd-mi325x", "granite-4.1-8b") == "amd-mi325x/granite-4.1-8b"
