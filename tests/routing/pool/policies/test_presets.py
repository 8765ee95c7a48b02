"""llm-d's published profiles, as documents."""

import pytest

from routing.core.document import Policy
from routing.pool.policies.presets import PRESETS, preset
from routing.pool.policies.weighted import WeightedPolicy


def weights(policy: Policy, name: str) -> dict[str, float]:
    profile = next(profile for profile in policy.profiles if profile.name == name)
    return {plugin.type: plugin.weight for plugin in profile.plugins}


def test_the_default_weighs_queue_2_memory_2_prefix_3() -> None:
    assert weights(preset("llm-d-weighted", is_disaggregated=False), "default") == {
        "queue-scorer": 2,
        "kv-cache-utilization-scorer": 2,
        "prefix-cache-scorer": 3,
    }


def test_disaggregated_it_is_what_kserve_renders() -> None:
    policy = preset("llm-d-weighted", is_disaggregated=True)

    assert weights(policy, "decode") == {
        "decode-filter": 1,
        "active-request-scorer": 2,
        "prefix-cache-scorer": 3,
    }
    assert "always-disagg-pd-decider" in {plugin.type for plugin in policy.plugins}


def test_token_aware_pairs_from_16_uncached_tokens_at_the_peak_of_prefill_endpoints() -> None:
    policy = preset("llm-d-token-aware", is_disaggregated=True)

    decider = next(plugin for plugin in policy.plugins if plugin.type == "prefix-based-pd-decider")
    affinity = policy.profiles[0].plugins[1]
    assert decider.parameters == {"nonCachedTokens": 16}
    assert affinity.parameters == {"peakPrefillThroughput": 33_821}


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("is_disaggregated", [False, True])
def test_every_preset_can_be_run(name: str, *, is_disaggregated: bool) -> None:
    assert WeightedPolicy(preset(name, is_disaggregated=is_disaggregated)).memory is not None
