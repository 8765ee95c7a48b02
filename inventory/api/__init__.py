"""The fleet in the REST API: translation only, no rules. Names of viewsets end in ViewSet."""

from inventory.api.accelerators import AcceleratorViewSet
from inventory.api.catalogue import AcceleratorModelViewSet, NodeTypeViewSet, VendorViewSet
from inventory.api.clusters import ClusterViewSet
from inventory.api.findings import FindingViewSet, ObservationViewSet
from inventory.api.imports import ImportViewSet
from inventory.api.nodes import NodeViewSet
from inventory.api.places import SiteViewSet

__all__ = [
    "AcceleratorModelViewSet",
    "AcceleratorViewSet",
    "ClusterViewSet",
    "FindingViewSet",
    "ImportViewSet",
    "NodeTypeViewSet",
    "NodeViewSet",
    "ObservationViewSet",
    "SiteViewSet",
    "VendorViewSet",
]
