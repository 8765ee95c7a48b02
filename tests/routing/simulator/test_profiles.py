"""Profiles: every accelerator of the demo has one, and unknown names are refused with the known."""

import pytest

from routing.simulator.profiles import ProfileError, load_profile, load_unfitted
from tests.routing.testbed.helpers import MODEL, make_settings

MEASURED = ("nvidia-h100-nvl", "amd-mi325x", "intel-gaudi3")
ESTIMATED = ("huawei-ascend-910b", "rebellions-atom-max", "furiosa-rngd")


@pytest.mark.parametrize("accelerator", MEASURED + ESTIMATED)
def test_a_profile_says_whether_it_is_an_estimate(accelerator: str) -> None:
    profile = load_profile(accelerator, MODEL)

    assert profile.estimate == (accelerator in ESTIMATED)


@pytest.mark.parametrize(
    ("accelerator", "held"), [("nvidia-h100-nvl", 55), ("amd-mi325x", 203), ("intel-gaudi3", 76)]
)
def test_caches_hold_as_many_prefixes_as_runs_tell(accelerator: str, held: int) -> None:
    assert load_profile(accelerator, MODEL).kv_tokens // 6000 == held


@pytest.mark.parametrize(
    ("accelerator", "seconds"),
    [("nvidia-h100-nvl", 0.498), ("amd-mi325x", 0.419), ("intel-gaudi3", 0.332)],
)
def test_a_missed_prompt_takes_about_the_published_time(accelerator: str, seconds: float) -> None:
    profile = load_profile(accelerator, MODEL)

    predicted = profile.prefill_seconds(7545, 0) + profile.request_overhead_seconds

    # Two runs of the MI325X pool differ by a factor of 28 in TTFT; the fit is between them.
    assert 0.75 * seconds < predicted < 1.7 * seconds


def test_an_unknown_accelerator_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ProfileError, match=r"'abacus'\. Known are: amd-mi325x"):
        load_profile("abacus", MODEL)


def test_a_slow_card_takes_longer_for_everything() -> None:
    sound, slow = (make_settings(speed=1.0, slowdown=factor).profile() for factor in (1.0, 3.0))

    assert slow.decode_seconds(8, 8000) == pytest.approx(3 * sound.decode_seconds(8, 8000))
    assert slow.prefill_seconds(2048, 100) == pytest.approx(3 * sound.prefill_seconds(2048, 100))


def test_experts_cost_what_the_tokens_of_a_step_touch() -> None:
    profile = load_profile("amd-mi325x", "sarvam-30b")
    step = profile.step_seconds

    one, many = (profile.decode_seconds(count, 0) - step for count in (1, 200))

    per_sequence = profile.step_seconds_per_sequence
    assert one - per_sequence == pytest.approx(6 / 128 * profile.step_seconds_of_experts)
    assert many - 200 * per_sequence == pytest.approx(profile.step_seconds_of_experts, rel=1e-3)


def test_without_fits_only_what_was_measured_differs_from_the_roofline() -> None:
    fitted = load_profile("intel-gaudi3", MODEL)
    unfitted = load_unfitted("intel-gaudi3", MODEL)

    assert unfitted.estimate
    assert unfitted.step_seconds != fitted.step_seconds
    assert unfitted.kv_tokens == fitted.kv_tokens
    assert unfitted.max_num_batched_tokens == 16384


def test_a_slower_engine_takes_as_much_longer_over_the_wire_as_over_its_staged_link() -> None:
    profile = load_profile("intel-gaudi3", MODEL)

    slower = profile.slower(2.0)

    assert slower.wire_bytes_per_second == profile.wire_bytes_per_second / 2
    assert slower.link_bytes_per_second == profile.link_bytes_per_second / 2
    assert slower.prefill_seconds(1000, 0) == pytest.approx(2 * profile.prefill_seconds(1000, 0))
