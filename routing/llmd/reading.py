"""From text to a checked configuration, and from deprecated spellings to current ones.

What is written stays as it is: `read` gives the configuration in its own words, `canonical` the
same in current names, which the conversion works on.
"""

import difflib
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from routing.core.refusals import DocumentError, refusal
from routing.llmd import yaml_text
from routing.llmd.model import (
    API_VERSION,
    KIND,
    OLD_VERSION,
    EndpointPickerConfig,
    PluginEntry,
)
from routing.llmd.notes import Note
from routing.llmd.old_spellings import current_entry, moved_places, renamed
from routing.llmd.other_types import OLD_SCORER, OLD_TYPES, TYPES, spec_of


def read(text: str | bytes) -> EndpointPickerConfig:
    """Parse and check a text. Raises DocumentError with a pointer to the first thing wrong.

    An empty text is the configuration of a picker without any: upstream's built-in default.
    """
    tree = yaml_text.load(text)
    if tree is None:
        tree = {"apiVersion": API_VERSION, "kind": KIND}
    try:
        config = msgspec.convert(tree, EndpointPickerConfig)
    except msgspec.ValidationError as error:
        raise refusal(str(error), msgspec.json.schema(EndpointPickerConfig)) from error
    _check_names(config)
    canonical(config)
    return config


def write(config: EndpointPickerConfig) -> str:
    """As text: every field that was read, none that was not."""
    return yaml_text.dump(tree_of(config))


def tree_of(config: EndpointPickerConfig) -> Any:
    """As plain objects."""
    return msgspec.json.decode(msgspec.json.encode(config))


def canonical(config: EndpointPickerConfig) -> tuple[EndpointPickerConfig, list[Note]]:
    """In current names and places, with a note for each change.

    Raises DocumentError for a type that nobody knows, or parameters that it does not have.
    """
    notes: list[Note] = []
    entries: list[PluginEntry] = []
    added: list[PluginEntry] = []
    for place, entry in enumerate(config.entries):
        pointer = f"/plugins/{place}"
        current, producers = current_entry(entry, pointer, notes)
        _check_type(current, pointer)
        for producer in producers:
            _check_type(producer, pointer)
        entries.append(current)
        added += producers
    plugins: Any = (*entries, *added) if entries else config.plugins
    if config.api_version == OLD_VERSION:
        notes.append(renamed("/apiVersion", config.api_version, API_VERSION))
    moved = moved_places(config, notes)
    return replace(config, api_version=API_VERSION, plugins=plugins, **moved), notes


def _check_type(entry: PluginEntry, pointer: str) -> None:
    spec = spec_of(entry.type)
    if spec is None:
        near = difflib.get_close_matches(entry.type, [*TYPES, *OLD_TYPES, OLD_SCORER], n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise DocumentError(
            f"{pointer}/type",
            f"'{entry.type}' is no plugin type of llm-d Router 0.10.{hint}",
            tuple(sorted(TYPES)),
        )
    if spec.parameters is None:
        return
    try:
        msgspec.convert(entry.settings, spec.parameters)
    except msgspec.ValidationError as error:
        found = refusal(str(error), msgspec.json.schema(spec.parameters))
        raise DocumentError(
            f"{pointer}/parameters{found.pointer}", found.message, found.allowed
        ) from error


def _check_names(config: EndpointPickerConfig) -> None:
    """Names are unique, and every reference leads to a plugin."""
    names: dict[str, int] = {}
    for place, entry in enumerate(config.entries):
        if entry.known_as in names:
            raise DocumentError(
                f"/plugins/{place}/name",
                f"The plugin at position {names[entry.known_as]} is called '{entry.known_as}' too.",
            )
        names[entry.known_as] = place
    profiles = [profile.name for profile in config.profiles]
    for place, name in enumerate(profiles):
        if name in profiles[:place]:
            raise DocumentError(
                f"/schedulingProfiles/{place}/name", f"Two profiles are called '{name}'."
            )
    for pointer, name, needs_entry in _references(config):
        if name not in names and (needs_entry or spec_of(name) is None):
            near = difflib.get_close_matches(name, names, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise DocumentError(
                pointer, f"No plugin is called '{name}'.{hint}", tuple(sorted(names))
            )


def _references(config: EndpointPickerConfig) -> Iterator[tuple[str, str, bool]]:
    """Pointer, name, and whether an entry must exist; defaults need none elsewhere."""
    for place, profile in enumerate(config.profiles):
        for position, ref in enumerate(profile.refs):
            pointer = f"/schedulingProfiles/{place}/plugins/{position}/pluginRef"
            yield pointer, ref.plugin_ref, True
    tree = tree_of(config)
    for section in (
        "dataLayer", "data", "flowControl", "requestHandler", "saturationDetector", "parser",
    ):  # fmt: skip
        yield from _refs_in(tree.get(section), f"/{section}")


def _refs_in(value: Any, pointer: str) -> Iterator[tuple[str, str, bool]]:
    if isinstance(value, list):
        for place, child in enumerate(value):
            yield from _refs_in(child, f"{pointer}/{place}")
    elif isinstance(value, dict):
        for name, child in value.items():
            if name.lower().endswith("ref") and isinstance(child, str):
                yield f"{pointer}/{name}", child, False
            else:
                yield from _refs_in(child, f"{pointer}/{name}")
