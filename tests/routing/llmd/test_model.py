"""What a text leaves out stays out; what it says stays."""

import msgspec

from routing.llmd.model import EndpointPickerConfig, PluginEntry, PluginRef, given

HEAD = {"apiVersion": "llm-d.ai/v1alpha1", "kind": "EndpointPickerConfig"}


def test_a_stated_default_is_written_and_one_left_out_is_not() -> None:
    stated = {"pluginRef": "queue-scorer", "weight": 1}
    left_out = {"pluginRef": "queue-scorer"}

    assert msgspec.to_builtins(msgspec.convert(stated, PluginRef)) == stated
    assert msgspec.to_builtins(msgspec.convert(left_out, PluginRef)) == left_out


def test_names_and_parameters_have_readings_for_those_left_out() -> None:
    entry = PluginEntry(type="queue-scorer")
    config = msgspec.convert(HEAD, EndpointPickerConfig)

    assert (entry.known_as, entry.settings) == ("queue-scorer", {})
    assert PluginEntry(type="queue-scorer", parameters=None).settings == {}
    assert (config.entries, config.profiles) == ((), ())
    assert given(config.plugins, "nothing") == "nothing"
