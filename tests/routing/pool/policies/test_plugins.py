"""The folders are scanned; an entry becomes an object or is refused with its field."""

import pytest

from routing.core.document import DocumentError, Plugin
from routing.pool.policies.plugins import FILTERS, IN_PROFILES, PICKERS, SCORERS, build


def test_every_file_of_the_folders_is_found() -> None:
    assert {"decode-filter", "label-selector-filter", "slo-headroom-tier-filter"} <= set(FILTERS)
    assert {"queue-scorer", "latency-scorer", "lora-affinity-scorer"} <= set(SCORERS)
    assert set(PICKERS) == {"max-score-picker", "random-picker", "weighted-random-picker"}


@pytest.mark.parametrize("name", sorted(IN_PROFILES))
def test_a_plugin_knows_its_type_and_has_one_of_the_methods(name: str) -> None:
    plugin = IN_PROFILES[name]

    assert plugin.type == name
    assert {"keep", "score", "pick"} & set(dir(plugin))


def test_parameters_have_upstreams_names() -> None:
    entry = Plugin(
        type="prefix-cache-affinity-filter",
        parameters={"maxTTFTPenaltyMs": 5000, "affinityThreshold": 0.5},
    )

    built = build(entry, IN_PROFILES, "/p")

    assert (built.max_ttft_penalty_ms, built.affinity_threshold) == (5000, 0.5)


def test_a_near_name_is_suggested() -> None:
    entry = Plugin(type="prefix-cache-affinity-filter", parameters={"affinityTreshold": 0.5})

    with pytest.raises(DocumentError, match="Did you mean 'affinityThreshold'") as caught:
        build(entry, IN_PROFILES, "/p")

    assert caught.value.pointer == "/p/parameters/affinityTreshold"
    assert "ttftSource" in caught.value.allowed
