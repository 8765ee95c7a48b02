"""Profiles: every accelerator of the demo has one, and unknown names are refused with the known."""

import pytest

from routing.testbed.profiles import ProfileError, load_profile
from tests.routing.testbed.helpers import MODEL, make_settings

MEASURED = ("nvidia-h100-nvl", "amd-mi325x", "intel-gaudi3")
ESTIMATED = ("huawei-ascend-910b", "rebellions-atom-max", "furiosa-rngd")


@pytest.mark.parametrize("accelerator", MEASURED + ESTIMATED)
def test_a_profile_says_whether_it_is_an_estimate(accelerator: str) -> None:
    profile = load_profile(accelerator, MODEL)

    assert profile.estimate == (accelerator in ESTIMATED)


@pytest.mark.parametrize(
    ("accelerator", "held"), [("nvidia-h100-nvl", 63), ("amd-mi325x", 203), ("intel-gaudi3", 76)]
)
def test_caches_hold_as_many_prefixes_as_published(accelerator: str, held: int) -> None:
    assert load_profile(accelerator, MODEL).kv_tokens // 6000 == held


@pytest.mark.parametrize(
    ("accelerator", "seconds"),
    [("nvidia-h100-nvl", 0.498), ("amd-mi325x", 0.419), ("intel-gaudi3", 0.332)],
)
def test_a_missed_prompt_takes_about_the_published_time(accelerator: str, seconds: float) -> None:
    profile = load_profile(accelerator, MODEL)

    predicted = profile.prefill_seconds(7545, 0) + profile.request_overhead_seconds

    assert 0.75 * seconds < predicted <= seconds


def test_an_unknown_accelerator_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ProfileError, match=r"'abacus'\. Known are: amd-mi325x"):
        load_profile("abacus", MODEL)


def test_a_slow_card_takes_longer_for_everything() -> None:
    sound, slow = (make_settings(speed=1.0, slowdown=factor).profile() for factor in (1.0, 3.0))

    assert slow.decode_seconds(8, 8000) == pytest.approx(3 * sound.decode_seconds(8, 8000))
    assert slow.prefill_seconds(2048, 100) == pytest.approx(3 * sound.prefill_seconds(2048, 100))
