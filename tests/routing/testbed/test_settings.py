"""Settings of an engine and what follows from them."""

import pytest

from routing.testbed.settings import SettingsError
from tests.routing.testbed.helpers import make_settings


def test_sizes_come_from_the_profile_unless_they_are_given() -> None:
    ours, given = make_settings(), make_settings(kv_tokens=3200, max_num_batched_tokens=99)

    profile = ours.profile()
    sizes = [settings.limits(profile) for settings in (ours, given)]

    assert [limits.blocks for limits in sizes] == [profile.kv_tokens // 16, 200]
    assert [limits.batched_tokens for limits in sizes] == [profile.max_num_batched_tokens, 99]


@pytest.mark.parametrize(
    ("overrides", "limit"),
    [({}, 32_768), ({"max_model_len": 9216}, 9216), ({"kv_tokens": 1000}, 992)],
)
def test_a_lone_sequence_always_fits_into_the_cache(overrides: dict[str, int], limit: int) -> None:
    settings = make_settings(**overrides)
    profile = settings.profile()

    assert settings.context_limit(profile, settings.limits(profile)) == limit


@pytest.mark.parametrize("wrong", [{"speed": 0.0}, {"slowdown": -1.0}])
def test_an_engine_that_never_moves_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="must be above 0"):
        make_settings(**wrong).profile()


def test_a_cache_without_a_block_is_refused() -> None:
    settings = make_settings(kv_tokens=100, block_size=128)

    with pytest.raises(SettingsError, match="less than one block of 128 tokens"):
        settings.limits(settings.profile())
