"""Deprecated spellings of a configuration turned into current ones, with a note for each."""

from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from routing.core.refusals import DocumentError
from routing.llmd.model import (
    Detector,
    EndpointPickerConfig,
    FlowControl,
    PluginEntry,
    Reference,
    RequestHandler,
    given,
)
from routing.llmd.notes import Note
from routing.llmd.other_types import (
    OLD_HANDLER_FIELDS,
    OLD_PREFIX_FIELDS,
    OLD_SCORER,
    OLD_TYPES,
    PRECISE_FIELDS,
)

HANDLER = "disagg-profile-handler"
DECIDER = "prefix-based-pd-decider"
CHARACTERS_PER_TOKEN = 4
"""Upstream's own estimate where it counts without a tokenizer."""
PRECISE = "precise-prefix-cache-producer"
APPROXIMATE = "approx-prefix-cache-producer"
PREFIX_SCORER = "prefix-cache-scorer"


def renamed(pointer: str, old: str, current: str) -> Note:
    """A note that `old` is called otherwise now."""
    return Note(kind="renamed", pointer=pointer, subject=old, message=f"now {current}")


def current_entry(
    entry: PluginEntry, pointer: str, notes: list[Note]
) -> tuple[PluginEntry, list[PluginEntry]]:
    """The entry in current names, and a producer that it stood for."""
    if entry.type == OLD_SCORER:
        return _split_precise(entry, pointer, notes)
    if entry.type in OLD_TYPES:
        current = OLD_TYPES[entry.type]
        notes.append(renamed(f"{pointer}/type", entry.type, current))
        # Whoever referred to it by its type goes on doing so.
        entry = replace(entry, type=current, name=entry.known_as)
    if entry.type == HANDLER:
        return _without_threshold(_without_flat_names(entry, pointer, notes), pointer, notes)
    if entry.type in (PREFIX_SCORER, APPROXIMATE):
        return _without_characters(entry, pointer, notes)
    return entry, []


def _split_precise(
    entry: PluginEntry, pointer: str, notes: list[Note]
) -> tuple[PluginEntry, list[PluginEntry]]:
    notes.append(renamed(f"{pointer}/type", entry.type, f"{PRECISE} and {PREFIX_SCORER}"))
    producer = f"{entry.known_as}-producer"
    settings = entry.settings
    of_producer = {name: value for name, value in settings.items() if name in PRECISE_FIELDS}
    rest = {name: value for name, value in settings.items() if name not in PRECISE_FIELDS}
    scorer = replace(
        entry,
        type=PREFIX_SCORER,
        name=entry.known_as,
        parameters=rest | {"prefixMatchInfoProducerName": producer},
    )
    return scorer, [PluginEntry(type=PRECISE, name=producer, parameters=of_producer)]


def _without_flat_names(entry: PluginEntry, pointer: str, notes: list[Note]) -> PluginEntry:
    settings = dict(entry.settings)
    for old, (group, stage) in OLD_HANDLER_FIELDS.items():
        if old in settings:
            inner = settings.get(group) or {}
            if not isinstance(inner, dict):
                raise DocumentError(f"{pointer}/parameters/{group}", "An object is wanted here.")
            notes.append(renamed(f"{pointer}/parameters/{old}", old, f"{group}.{stage}"))
            settings[group] = {stage: settings.pop(old)} | inner
    return replace(entry, parameters=settings) if settings else entry


def _without_threshold(
    entry: PluginEntry, pointer: str, notes: list[Note]
) -> tuple[PluginEntry, list[PluginEntry]]:
    """A decider in place of the handler's own bound, from before there were deciders."""
    settings = dict(entry.settings)
    old = [name for name in ("threshold", "hashBlockSize") if name in settings]
    if not old:
        return entry, []
    threshold = settings.pop("threshold", 0)
    settings.pop("hashBlockSize", None)
    for field in old:
        message = f"now {DECIDER}.nonCachedTokens, four characters to a token"
        where = f"{pointer}/parameters/{field}"
        notes.append(Note(kind="renamed", pointer=where, subject=field, message=message))
    if not isinstance(threshold, int) or isinstance(threshold, bool) or threshold < 0:
        where = f"{pointer}/parameters/threshold"
        raise DocumentError(where, "A whole number of characters is wanted here.")
    deciders = settings.get("deciders") or {}
    if not isinstance(deciders, dict):
        raise DocumentError(f"{pointer}/parameters/deciders", "An object is wanted here.")
    if not threshold or deciders.get("prefill"):
        return replace(entry, parameters=settings), []
    name = f"{entry.known_as}-decider"
    settings["deciders"] = deciders | {"prefill": name}
    tokens = -(-threshold // CHARACTERS_PER_TOKEN)
    decider = PluginEntry(type=DECIDER, name=name, parameters={"nonCachedTokens": tokens})
    return replace(entry, parameters=settings), [decider]


def _without_characters(
    entry: PluginEntry, pointer: str, notes: list[Note]
) -> tuple[PluginEntry, list[PluginEntry]]:
    """Parameters from before there were producers, and blocks counted in characters."""
    settings = dict(entry.settings)
    for old in ("blockSize", "hashBlockSize"):
        if old in settings:
            del settings[old]
            message = "blocks are counted in tokens: blockSizeTokens"
            notes.append(
                Note(
                    kind="renamed",
                    pointer=f"{pointer}/parameters/{old}",
                    subject=old,
                    message=message,
                )
            )
    source = settings.pop("prefixHashSource", None)
    if source is not None:
        message = "the router hashes prompts itself"
        where = f"{pointer}/parameters/prefixHashSource"
        notes.append(Note(kind="kept", pointer=where, subject="prefixHashSource", message=message))
    index = {name: settings.pop(name) for name in OLD_PREFIX_FIELDS if name in settings}
    if entry.type == APPROXIMATE or not index:
        changed = replace(entry, parameters=settings | index) if entry.settings else entry
        return changed, []
    producer = f"{entry.known_as}-producer"
    notes.extend(
        renamed(f"{pointer}/parameters/{name}", name, f"{APPROXIMATE}.{name}") for name in index
    )
    settings["prefixMatchInfoProducerName"] = producer
    changed = replace(entry, parameters=settings)
    return changed, [PluginEntry(type=APPROXIMATE, name=producer, parameters=index)]


def moved_places(config: EndpointPickerConfig, notes: list[Note]) -> dict[str, Any]:
    """The deprecated places at the top count only where the current ones are unset."""
    changes: dict[str, Any] = {"saturation_detector": UNSET, "parser": UNSET, "data": UNSET}
    detector, parser = config.saturation_detector, config.parser
    if isinstance(detector, Detector):
        changes |= _moved_detector(config, detector, notes)
    if config.data is not UNSET:
        notes.append(renamed("/data", "data", "dataLayer"))
        if config.data_layer is UNSET:
            changes["data_layer"] = config.data
    if isinstance(parser, Reference):
        notes.append(renamed("/parser", "parser", "requestHandler.parsers"))
        handler = given(config.request_handler, RequestHandler())
        if handler.parsers is UNSET:
            changes["request_handler"] = replace(handler, parsers=(parser,))
    return changes


def _moved_detector(
    config: EndpointPickerConfig, detector: Detector, notes: list[Note]
) -> dict[str, Any]:
    where, place = "/saturationDetector", "flowControl.saturationDetector"
    if isinstance(detector.plugin_ref, UnsetType):
        message = "saturation here is expected wait in seconds"
        notes.append(
            Note(kind="kept", pointer=where, subject="saturationDetector", message=message)
        )
        return {}
    notes.append(renamed(where, "saturationDetector", place))
    flow = given(config.flow_control, FlowControl())
    if flow.saturation_detector is not UNSET:
        return {}
    reference = Reference(plugin_ref=detector.plugin_ref)
    return {"flow_control": replace(flow, saturation_detector=reference)}
