"""Types beyond scheduling."""

import msgspec
import pytest

from routing.llmd.other_types import OTHER, TYPES, spec_of


@pytest.mark.parametrize("name", sorted(OTHER))
def test_a_type_is_found_by_its_name(name: str) -> None:
    assert spec_of(name) is TYPES[name]


def test_a_multi_cluster_type_is_carried_without_a_look_inside() -> None:
    spec = spec_of("multicluster-queue-scorer")

    assert spec is not None
    assert (spec.parameters, spec.has_counterpart, spec.is_experimental) == (None, False, True)
    assert spec_of("multi-cluster") is None


def test_defaults_are_upstreams() -> None:
    producer = TYPES["approx-prefix-cache-producer"].parameters
    events = TYPES["precise-prefix-cache-producer"].parameters

    assert producer is not None
    assert events is not None
    assert msgspec.to_builtins(producer()) == {
        "autoTune": True,
        "blockSizeTokens": 16,
        "maxPrefixBlocksToMatch": 2048,
        "maxPrefixTokensToMatch": 131_072,
        "lruCapacityPerServer": 31_250,
    }
    assert msgspec.to_builtins(events())["kvEventsConfig"]["topicFilter"] == "kv@"
