"""From our policy and admission to an EndpointPickerConfig.

With the configuration that they once came from as `base`, what has no counterpart here is taken
over from it unchanged; when nothing was changed since, the result is `base` itself, to the last
field.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from routing.core.document import Admission, Plugin, Policy
from routing.core.refusals import DocumentError
from routing.llmd import flow_control
from routing.llmd.conversion import IN_PROFILES, Report, convert_config
from routing.llmd.model import (
    API_VERSION,
    KIND,
    EndpointPickerConfig,
    FlowControl,
    PluginEntry,
    PluginRef,
    ProfileEntry,
    given,
)
from routing.llmd.old_spellings import HANDLER
from routing.llmd.other_types import spec_of
from routing.llmd.reading import canonical


def config_of(
    policy: Policy, admission: Admission, *, base: EndpointPickerConfig | None = None
) -> EndpointPickerConfig:
    """A configuration that runs the same profiles.

    Raises DocumentError for a policy that llm-d does not have: state the profiles that it means.
    """
    if policy.name != "weighted" or not policy.profiles:
        raise DocumentError(
            "/policy/name",
            f"The policy '{policy.name}' has no profiles, so llm-d cannot run it.",
            ("weighted",),
        )
    report = None if base is None else convert_config(base)
    if report is not None and (report.policy, report.admission) == (policy, admission):
        return report.config
    made = _Entries()
    for plugin in policy.plugins:
        made.add(plugin, "")
    profiles = tuple(
        ProfileEntry(
            name=profile.name,
            plugins=tuple(made.ref(plugin, profile.name) for plugin in profile.plugins),
        )
        for profile in policy.profiles
    )
    config = EndpointPickerConfig(
        api_version=API_VERSION,
        kind=KIND,
        plugins=tuple(made.entries.values()),
        scheduling_profiles=profiles,
    )
    if report is not None:
        config = _with_kept(config, report)
    return _with_flow_control(config, admission, report)


class _Entries:
    """Plugins by name; the same plugin in two profiles is one entry."""

    def __init__(self) -> None:
        self.entries: dict[str, PluginEntry] = {}

    def add(self, plugin: Plugin, profile: str) -> str:
        """Make an entry, under another name when its own is taken; returns the name."""
        settings: Any = dict(plugin.parameters) or UNSET
        name = plugin.name or plugin.type
        for candidate in (name, f"{name}-{profile}", *(f"{name}-{n}" for n in range(2, 100))):
            shown: Any = UNSET if candidate == plugin.type else candidate
            entry = PluginEntry(type=plugin.type, name=shown, parameters=settings)
            if self.entries.setdefault(candidate, entry) == entry:
                return candidate
        raise DocumentError("/policy/plugins", f"More than 100 plugins are called '{name}'.")

    def ref(self, plugin: Plugin, profile: str) -> PluginRef:
        """A profile's reference; only scorers have a weight."""
        spec = spec_of(plugin.type)
        is_scorer = spec is not None and spec.kind == "scorer"
        weight: Any = _short(plugin.weight) if is_scorer else UNSET
        return PluginRef(plugin_ref=self.add(plugin, profile), weight=weight)


def _short(weight: float) -> float | int:
    return int(weight) if weight == int(weight) else weight


def _with_kept(config: EndpointPickerConfig, report: Report) -> EndpointPickerConfig:
    """Take over what the base has and the conversion does not use."""
    base, _ = canonical(report.config)
    names = {entry.known_as for entry in config.entries}
    kept = {
        entry.known_as: entry
        for entry in base.entries
        if entry.known_as not in names and not _is_replaced(entry)
    }
    stages = _stage_names(base)
    profiles = tuple(
        replace(profile, plugins=(*profile.refs, *_kept_refs(base, stages, profile.name, kept)))
        for profile in config.profiles
    )
    used = set(stages.values())
    others = tuple(profile for profile in base.profiles if profile.name not in used)
    return replace(
        config,
        plugins=(*config.entries, *kept.values()),
        scheduling_profiles=(*profiles, *_runnable(others, names | set(kept))),
        feature_gates=base.feature_gates,
        data_layer=base.data_layer,
        flow_control=base.flow_control,
        request_handler=base.request_handler,
    )


def _is_replaced(entry: PluginEntry) -> bool:
    """Types that the policy itself states: leaving one out there takes it away."""
    spec = spec_of(entry.type)
    return (
        spec is not None
        and spec.has_counterpart
        and spec.kind in (*IN_PROFILES, "handler", "decider")
    ) or entry.type == "approx-prefix-cache-producer"


def _stage_names(base: EndpointPickerConfig) -> dict[str, str]:
    """Our names of profiles to the base's."""
    handler = next((entry for entry in base.entries if entry.type == HANDLER), None)
    if handler is None:
        return {"default": base.profiles[0].name} if base.profiles else {}
    names = handler.settings.get("profiles") or {}
    return {stage: names.get(stage, stage) for stage in ("decode", "prefill")}


def _kept_refs(
    base: EndpointPickerConfig, stages: dict[str, str], stage: str, kept: Iterable[str]
) -> tuple[PluginRef, ...]:
    wanted = set(kept)
    return tuple(
        ref
        for profile in base.profiles
        if profile.name == stages.get(stage)
        for ref in profile.refs
        if ref.plugin_ref in wanted
    )


def _runnable(profiles: Iterable[ProfileEntry], names: set[str]) -> list[ProfileEntry]:
    """Profiles of the base that no stage runs, with the references that still lead somewhere."""
    return [
        replace(profile, plugins=tuple(ref for ref in profile.refs if ref.plugin_ref in names))
        for profile in profiles
    ]


def _with_flow_control(
    config: EndpointPickerConfig, admission: Admission, report: Report | None
) -> EndpointPickerConfig:
    if report is not None and report.admission == admission:
        return config
    gates = tuple(
        gate
        for gate in given(config.feature_gates, ())
        if gate.partition("=")[0].strip() != flow_control.GATE
    )
    ours = flow_control.flow_control_of(admission)
    if ours is None:
        return replace(config, feature_gates=gates or UNSET, flow_control=UNSET)
    stated = {
        name: value
        for name in FlowControl.__struct_fields__
        if (value := getattr(ours, name)) is not msgspec.UNSET
    }
    merged = replace(given(config.flow_control, FlowControl()), **stated)
    return replace(config, feature_gates=(*gates, flow_control.GATE), flow_control=merged)
