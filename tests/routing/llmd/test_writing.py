"""From our document to a configuration and back: nothing is lost, with a base or without."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from routing.core.document import Admission, Band, DocumentError, Plugin, Policy, Profile
from routing.llmd.conversion import convert, convert_config
from routing.llmd.reading import read, write
from routing.llmd.writing import config_of
from routing.pool.policies.presets import PRESETS, preset
from tests.routing.llmd.test_reading import SAMPLES, sample


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_unchanged_it_is_written_as_it_came(path: Path) -> None:
    report = convert(path.read_text())

    config = config_of(report.policy, report.admission, base=report.config)

    assert config == read(path.read_text())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_without_its_base_it_still_means_the_same(path: Path) -> None:
    report = convert(path.read_text())

    again = convert(write(config_of(report.policy, report.admission)))

    assert again.policy == report.policy
    assert again.admission.queue_requests == report.admission.queue_requests


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("is_disaggregated", [False, True])
def test_the_presets_are_configurations_of_llm_d(name: str, *, is_disaggregated: bool) -> None:
    policy = preset(name, is_disaggregated=is_disaggregated)

    report = convert(write(config_of(policy, Admission())))

    assert report.policy == policy


def changed(name: str) -> tuple[str, str]:
    """A sample with one weight changed: what was written, and what was read."""
    report = convert(sample(name))
    first, *rest = report.policy.profiles
    *others, last = first.plugins
    profile = replace(first, plugins=(*others, replace(last, weight=9.0)))
    policy = replace(report.policy, profiles=(profile, *rest))
    config = config_of(policy, report.admission, base=report.config)
    assert convert_config(config).policy == policy
    return write(config), sample(name)


def test_a_change_keeps_what_has_no_counterpart() -> None:
    text, _ = changed("everything")
    config = read(text)

    types = {entry.type for entry in config.entries}
    assert {"multicluster-something", "utilization-filter", "burst-prefix-cache-producer"} <= types
    refs = {ref.plugin_ref for profile in config.profiles for ref in profile.refs}
    assert "utilization-filter" in refs
    before = read(sample("everything"))
    assert config.data_layer == before.data_layer
    assert config.flow_control == before.flow_control
    assert config.request_handler == before.request_handler
    assert [profile.name for profile in config.profiles] == ["prefill", "decode", "experiment"]


def test_a_change_of_old_names_is_written_in_current_ones() -> None:
    text, _ = changed("old-names")

    assert "llm-d.ai/v1alpha1" in text
    assert "type: tokenizer" not in text
    assert "type: token-producer" in text


def test_another_admission_changes_flow_control_only_where_it_says_so() -> None:
    report = convert(sample("everything"))
    admission = replace(report.admission, queue_seconds=5.0, bands=(Band(priority=7),))

    config = config_of(report.policy, admission, base=report.config)

    flow = config.flow_control
    assert (flow.default_request_ttl, len(flow.priority_bands)) == ("5s", 1)
    assert flow.saturation_detector == report.config.flow_control.saturation_detector
    off = config_of(report.policy, Admission(), base=report.config)
    assert "flowControl" not in off.feature_gates


def test_equal_plugins_are_one_entry_and_different_ones_of_a_type_get_names() -> None:
    load = Plugin(type="token-load-scorer")
    other = Plugin(type="token-load-scorer", parameters={"queueThresholdTokens": 5})
    policy = Policy(
        name="weighted",
        plugins=(Plugin(type="disagg-profile-handler"),),
        profiles=(
            Profile(name="prefill", plugins=(load,)),
            Profile(name="decode", plugins=(load, other)),
        ),
    )

    config = config_of(policy, Admission())

    assert [entry.known_as for entry in config.entries] == [
        "disagg-profile-handler",
        "token-load-scorer",
        "token-load-scorer-decode",
    ]


@pytest.mark.parametrize("name", ["consort", "round-robin", "weighted"])
def test_a_policy_without_profiles_cannot_be_written(name: str) -> None:
    with pytest.raises(DocumentError, match="no profiles"):
        config_of(Policy(name=name), Admission())


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["queue-scorer", "token-load-scorer", "prefix-cache-scorer"]),
            st.floats(0, 100, allow_nan=False),
        ),
        max_size=6,
    )
)
@settings(max_examples=60, deadline=None)
def test_any_weights_survive_the_way_there_and_back(entries: list[tuple[str, float]]) -> None:
    plugins = tuple(Plugin(type=name, weight=weight) for name, weight in entries)
    policy = Policy(name="weighted", profiles=(Profile(plugins=plugins),))

    assert convert(write(config_of(policy, Admission()))).policy == policy
