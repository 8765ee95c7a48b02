"""What a pool's router learned about speed, as JSON-able values, and back.

Endpoints are named by id and class, not by instance: an engine that was started anew runs on the
same card. What was kept is believed less the older it is: uncertainty grows towards that of the
start with a time constant of six hours, while the figures themselves stay. Loads, caches, leases
and homes are not kept: they are rebuilt from what is seen.
"""

import math
from collections.abc import Mapping
from typing import Any

from routing.core.table import Instance
from routing.pool.knowledge import Knowledge
from routing.producers.speeds import Estimates

VERSION = 1
AGEING_SECONDS = 6 * 3600.0
_PHASES = ("prefill", "decode")


class SpeedMemory:
    """What a pool's router knows of speed, for whoever keeps it."""

    def __init__(self, known: Knowledge) -> None:
        self._known = known

    def export(self) -> dict[str, Any]:
        """JSON-able values to keep."""
        return export(self._known)

    def restore(self, kept: Mapping[str, Any], *, age_seconds: float) -> int:
        """Take kept values; see `restore` of the module."""
        return restore(self._known, kept, age_seconds=age_seconds)

    def errors(self) -> dict[str, dict[str, dict[str, float | int | None]]]:
        """Prediction errors by class and phase, with the number of outcomes."""
        return self._known.predictions.describe_classes()


def export(known: Knowledge) -> dict[str, Any]:
    """Learned speeds of one pool."""
    speeds, table, pairs = known.speeds, known.table, known.pairs
    endpoints = {
        instance.spec.id: {
            "speed_class": instance.spec.speed_class,
            "load_factor": float(table.load_factor[instance.row]),
            **_phases(estimates),
        }
        for instance, estimates in speeds.of_instance.items()
        if instance.is_alive
    }
    learned = [
        {
            "prefill": table.ids[prefill],
            "decode": table.ids[decode],
            "scale": float(pairs.scale[line, column]),
        }
        for prefill, line in pairs.line_of.items()
        for decode, column in pairs.column_of.items()
        if pairs.scale[line, column] != 1.0
    ]
    return {
        "version": VERSION,
        "classes": {name: _phases(estimates) for name, estimates in speeds.of_class.items()},
        "endpoints": endpoints,
        "pairs": learned,
    }


def restore(known: Knowledge, kept: Mapping[str, Any], *, age_seconds: float) -> int:
    """Take what was exported `age_seconds` ago; returns how many estimates were taken.

    What does not fit (another class, another version, impossible numbers) is left out.
    """
    if kept.get("version") != VERSION or not age_seconds >= 0:
        return 0
    share = 1.0 - math.exp(-age_seconds / AGEING_SECONDS)
    speeds, taken = known.speeds, 0
    for name, phases in _entries(kept, "classes"):
        if name in known.document.speed_classes:
            estimates = speeds.of_class.get(name) or Estimates()
            if _restore(estimates, phases, share):
                speeds.of_class[name] = estimates
                taken += 1
    for name, phases in _entries(kept, "endpoints"):
        instance = _instance(known, name)
        if instance is None or instance.spec.speed_class != phases.get("speed_class"):
            continue
        estimates = Estimates(like=speeds.of_class.get(instance.spec.speed_class) or Estimates())
        if _restore(estimates, phases, share):
            speeds.of_instance[instance] = estimates
            taken += 1
        _restore_load(known, instance, phases)
    speeds.fill(known.table)
    _restore_pairs(known, kept)
    return taken


def _phases(estimates: Estimates) -> dict[str, Any]:
    return {phase: estimates.of(phase).export() for phase in _PHASES}


def _entries(kept: Mapping[str, Any], name: str) -> list[tuple[str, Mapping[str, Any]]]:
    found = kept.get(name)
    if not isinstance(found, Mapping):
        return []
    return [(key, value) for key, value in found.items() if isinstance(value, Mapping)]


def _instance(known: Knowledge, endpoint_id: str) -> Instance | None:
    row = known.table.row_of.get(endpoint_id)
    return None if row is None else known.table.instances[row]


def _restore(estimates: Estimates, phases: Mapping[str, Any], share: float) -> bool:
    try:
        for phase in _PHASES:
            estimates.of(phase).restore(phases.get(phase) or {}, age_share=share)
    except ValueError:
        return False
    return True


def _restore_load(known: Knowledge, instance: Instance, phases: Mapping[str, Any]) -> None:
    factor = phases.get("load_factor")
    if isinstance(factor, int | float) and 0.1 <= factor <= 10.0:
        known.table.load_factor[instance.row] = factor


def _restore_pairs(known: Knowledge, kept: Mapping[str, Any]) -> None:
    pairs, row_of = known.pairs, known.table.row_of
    found = kept.get("pairs")
    for told in found if isinstance(found, list) else []:
        if not isinstance(told, Mapping):
            continue
        line = pairs.line_of.get(row_of.get(str(told.get("prefill")), -1))
        column = pairs.column_of.get(row_of.get(str(told.get("decode")), -1))
        scale = told.get("scale")
        is_sane = isinstance(scale, int | float) and 0.125 <= scale <= 8.0
        if line is not None and column is not None and is_sane:
            pairs.set_scale(line, column, float(told["scale"]))
