"""Rows of the fleet. One file per noun; everything here is imported as `inventory.models`."""

from inventory.models.acceptance import Acceptance
from inventory.models.catalogue import AcceleratorModel, NodeType
from inventory.models.cluster import Cluster
from inventory.models.discovery import Discovery
from inventory.models.folder import NodeFolder
from inventory.models.node import Accelerator, Node
from inventory.models.observation import Finding, ImportRun, Observation
from inventory.models.site import Site

__all__ = [
    "Accelerator",
    "AcceleratorModel",
    "Acceptance",
    "Cluster",
    "Discovery",
    "Finding",
    "ImportRun",
    "Node",
    "NodeFolder",
    "NodeType",
    "Observation",
    "Site",
]
