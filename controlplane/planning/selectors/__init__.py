"""Reads of planning: scenarios, runs and advice of a viewer; the fleet and its load as inputs."""

from controlplane.planning.selectors.fleet import FleetFacts, fleet_facts
from controlplane.planning.selectors.load import Load, measured_load
from controlplane.planning.selectors.races import latest_race, race_slots_taken
from controlplane.planning.selectors.viewers import (
    advice_for_viewer,
    open_run_count,
    runs_for_viewer,
    scenarios_for_viewer,
)

__all__ = [
    "FleetFacts",
    "Load",
    "advice_for_viewer",
    "fleet_facts",
    "latest_race",
    "measured_load",
    "open_run_count",
    "race_slots_taken",
    "runs_for_viewer",
    "scenarios_for_viewer",
]
