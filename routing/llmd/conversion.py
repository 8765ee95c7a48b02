"""From an EndpointPickerConfig to our policy and admission, with a report of all that changed.

Profiles, weights and parameters are taken over; the same names run the same rules here. What has no
counterpart is left out of the policy, named in the report, and still in the configuration.
"""

from typing import Any

import msgspec

from routing.core.document import Admission, Plugin, Policy, Profile
from routing.core.refusals import DocumentError
from routing.llmd import flow_control
from routing.llmd.model import EndpointPickerConfig, PluginEntry, PluginRef, ProfileEntry, given
from routing.llmd.notes import Note
from routing.llmd.old_spellings import APPROXIMATE, HANDLER, PRECISE
from routing.llmd.other_types import spec_of
from routing.llmd.reading import canonical, read

DEFAULT_SCORERS = (
    ("queue-scorer", 2.0),
    ("kv-cache-utilization-scorer", 2.0),
    ("prefix-cache-scorer", 3.0),
)
"""Of a picker without any configuration."""
IN_PROFILES = ("filter", "scorer", "picker")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration and what it is here."""

    config: EndpointPickerConfig
    """As it was written."""
    policy: Policy
    admission: Admission
    notes: tuple[Note, ...]

    @property
    def unmapped(self) -> tuple[Note, ...]:
        """What does nothing here."""
        return tuple(note for note in self.notes if note.kind == "kept")


def convert(text: str | bytes) -> Report:
    """Read a text and convert it. Raises DocumentError with a pointer into the text."""
    return convert_config(read(text))


def convert_config(config: EndpointPickerConfig) -> Report:
    """Convert what was read. Raises DocumentError where it contradicts itself."""
    current, notes = canonical(config)
    _note_entries(config, current, notes)
    policy = _Conversion(current, notes).policy()
    admission = flow_control.admission_of(current, notes)
    _note_data_layer(current, notes)
    return Report(config=config, policy=policy, admission=admission, notes=tuple(notes))


def _note_entries(
    config: EndpointPickerConfig, current: EndpointPickerConfig, notes: list[Note]
) -> None:
    for place, entry in enumerate(current.entries[: len(config.entries)]):
        spec = spec_of(entry.type)
        if spec is None or (spec.has_counterpart and not spec.note):
            continue
        kind: Any = "adapted" if spec.has_counterpart else "kept"
        message = spec.note or "no counterpart here: kept, without effect"
        notes.append(
            Note(kind=kind, pointer=f"/plugins/{place}", subject=entry.type, message=message)
        )


def _note_data_layer(config: EndpointPickerConfig, notes: list[Note]) -> None:
    if isinstance(config.data_layer, msgspec.UnsetType):
        return
    message = "endpoints come with the pool document, signals from the router's own scrapes"
    notes.append(Note(kind="kept", pointer="/dataLayer", subject="dataLayer", message=message))


class _Conversion:
    """One configuration in current names."""

    def __init__(self, config: EndpointPickerConfig, notes: list[Note]) -> None:
        self._config = config
        self._notes = notes
        self._entries = {entry.known_as: entry for entry in config.entries}

    def policy(self) -> Policy:
        stages = self._stages()
        profiles = tuple(
            Profile(name=name, plugins=self._plugins(profile, place))  # type: ignore[arg-type]
            for name, (profile, place) in stages.items()
        )
        outside = self._outside(has_pairs="decode" in stages)
        return Policy(name="weighted", plugins=outside, profiles=profiles)

    def _of_kind(self, *kinds: str) -> list[PluginEntry]:
        found = []
        for entry in self._config.entries:
            spec = spec_of(entry.type)
            if spec is not None and spec.kind in kinds:
                found.append(entry)
        return found

    def _stages(self) -> dict[str, tuple[ProfileEntry, int]]:
        """Profiles by our names, with their positions; -1 for one that is filled in."""
        profiles = self._config.profiles
        if not profiles:
            return {"default": (self._default_profile(), -1)}
        handlers = self._of_kind("handler")
        if len(handlers) > 1:
            raise DocumentError("/plugins", "A configuration has one profile handler.")
        handler = handlers[0] if handlers else None
        if handler is not None and handler.type == HANDLER:
            return self._pair_stages(handler)
        if handler is not None and handler.type == "header-profile-handler":
            wanted = handler.settings.get("defaultProfile", "decode")
            place = self._place_of(wanted, "/plugins")
        elif len(profiles) == 1 or handler is not None:
            place = 0
        else:
            raise DocumentError(
                "/schedulingProfiles", "Several profiles need a profile handler among the plugins."
            )
        self._note_left_out({place})
        return {"default": (profiles[place], place)}

    def _pair_stages(self, handler: PluginEntry) -> dict[str, tuple[ProfileEntry, int]]:
        names = handler.settings.get("profiles") or {}
        decode = self._place_of(names.get("decode", "decode"), "/schedulingProfiles")
        found = {"decode": (self._config.profiles[decode], decode)}
        prefill_name = names.get("prefill", "prefill")
        if any(profile.name == prefill_name for profile in self._config.profiles):
            prefill = self._place_of(prefill_name, "/schedulingProfiles")
            found = {"prefill": (self._config.profiles[prefill], prefill)} | found
        self._note_left_out({place for _, place in found.values()})
        return found

    def _place_of(self, name: str, pointer: str) -> int:
        names = [profile.name for profile in self._config.profiles]
        if name not in names:
            raise DocumentError(
                pointer, f"The handler's profile '{name}' does not exist.", tuple(names)
            )
        return names.index(name)

    def _note_left_out(self, used: set[int]) -> None:
        for place, profile in enumerate(self._config.profiles):
            if place not in used:
                self._notes.append(
                    Note(
                        kind="kept",
                        pointer=f"/schedulingProfiles/{place}",
                        subject=profile.name,
                        message="no stage of a decision here runs it",
                    )
                )

    def _default_profile(self) -> ProfileEntry:
        """Every filter, scorer and picker; without a scorer, the built-in ones."""
        found = self._of_kind(*IN_PROFILES)
        refs = [PluginRef(plugin_ref=entry.known_as) for entry in found]
        if not self._of_kind("scorer"):
            for scorer, weight in DEFAULT_SCORERS:
                self._entries[scorer] = PluginEntry(type=scorer)
                refs.append(PluginRef(plugin_ref=scorer, weight=weight))
        self._notes.append(
            Note(
                kind="default",
                pointer="/schedulingProfiles",
                subject="schedulingProfiles",
                message="one profile with " + (", ".join(ref.plugin_ref for ref in refs)),
            )
        )
        return ProfileEntry(name="default", plugins=tuple(refs))

    def _plugins(self, profile: ProfileEntry, place: int) -> tuple[Plugin, ...]:
        pointer = f"/schedulingProfiles/{place}/plugins"
        found, has_picker = [], False
        for position, ref in enumerate(profile.refs):
            entry = self._entries[ref.plugin_ref]
            spec = spec_of(entry.type)
            if spec is None or spec.kind not in IN_PROFILES or not spec.has_counterpart:
                self._note_ref(entry, f"{pointer}/{position}")
                continue
            has_picker = has_picker or spec.kind == "picker"
            found.append(
                Plugin(
                    type=entry.type,
                    name=None if entry.known_as == entry.type else entry.known_as,
                    weight=_weight(ref, f"{pointer}/{position}"),
                    parameters=self._settings(entry),
                )
            )
        if not has_picker:
            message = "max-score-picker"
            self._notes.append(
                Note(kind="default", pointer=pointer, subject="picker", message=message)
            )
        return tuple(found)

    def _note_ref(self, entry: PluginEntry, pointer: str) -> None:
        message = "it takes no part in this profile here"
        self._notes.append(Note(kind="kept", pointer=pointer, subject=entry.type, message=message))

    def _settings(self, entry: PluginEntry) -> dict[str, Any]:
        """Parameters, without the name of a producer that has no counterpart."""
        settings = dict(entry.settings)
        producer = settings.get("prefixMatchInfoProducerName")
        if producer and self._type_of(producer) not in (APPROXIMATE, PRECISE):
            del settings["prefixMatchInfoProducerName"]
        return settings

    def _type_of(self, name: str) -> str:
        entry = self._entries.get(name)
        return name if entry is None else entry.type

    def _outside(self, *, has_pairs: bool) -> tuple[Plugin, ...]:
        """The index producers and, with pairs, the handler and its decider."""
        found = []
        for entry in self._of_kind("producer", "decider", "handler"):
            if entry.type == APPROXIMATE:
                found.append(_plugin(entry, entry.settings))
            elif entry.type == PRECISE:
                found.append(_plugin(entry, {}))
            elif has_pairs and entry.type == HANDLER:
                found.append(_plugin(entry, self._handler_settings(entry)))
            elif has_pairs and _has_counterpart(entry):
                found.append(_plugin(entry, entry.settings))
        return tuple(found)

    def _handler_settings(self, entry: PluginEntry) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        if "stageOrder" in entry.settings:
            settings["stageOrder"] = entry.settings["stageOrder"]
        decider = (entry.settings.get("deciders") or {}).get("prefill", "")
        if decider:
            if not _has_counterpart(PluginEntry(type=self._type_of(decider))):
                raise DocumentError(
                    "/plugins", f"The decider '{decider}' is not among the plugins."
                )
            settings["deciders"] = {"prefill": decider}
        return settings


def _has_counterpart(entry: PluginEntry) -> bool:
    spec = spec_of(entry.type)
    return spec is not None and spec.kind == "decider" and spec.has_counterpart


def _plugin(entry: PluginEntry, settings: dict[str, Any]) -> Plugin:
    name = None if entry.known_as == entry.type else entry.known_as
    return Plugin(type=entry.type, name=name, parameters=dict(settings))


def _weight(ref: PluginRef, pointer: str) -> float:
    weight = float(given(ref.weight, 1.0))
    if weight < 0:
        raise DocumentError(f"{pointer}/weight", "A weight below 0 has no counterpart here.")
    return weight
