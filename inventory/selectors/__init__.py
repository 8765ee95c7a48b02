"""Reads of the fleet. Every list for a person starts from what that person may see."""

from inventory.selectors.capacity import CapacityGroup, Counts, capacity
from inventory.selectors.connection_tests import CONNECTION_TEST, newest_test, running_test
from inventory.selectors.lists import (
    accelerators_for_viewer,
    clusters_for_viewer,
    findings_for_viewer,
    imports_for_viewer,
    models_for_viewer,
    node_types_for_viewer,
    nodes_for_viewer,
    observations_for_viewer,
    sites_for_viewer,
)
from inventory.selectors.timeline import Moment, timeline

__all__ = [
    "CONNECTION_TEST",
    "CapacityGroup",
    "Counts",
    "Moment",
    "accelerators_for_viewer",
    "capacity",
    "clusters_for_viewer",
    "findings_for_viewer",
    "imports_for_viewer",
    "models_for_viewer",
    "newest_test",
    "node_types_for_viewer",
    "nodes_for_viewer",
    "observations_for_viewer",
    "running_test",
    "sites_for_viewer",
    "timeline",
]
