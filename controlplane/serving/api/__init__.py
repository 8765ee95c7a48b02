"""Serving in the API: translation tables between rows, services and JSON."""

from controlplane.serving.api.artefacts import ArtefactViewSet, PresenceViewSet
from controlplane.serving.api.fleet import (
    DeploymentViewSet,
    EndpointViewSet,
    RoleAssignmentViewSet,
)
from controlplane.serving.api.plans import ChangePlanViewSet, WaveViewSet
from controlplane.serving.api.pools import ModelViewSet, PoolViewSet
from controlplane.serving.api.presets import ModelFitViewSet, PresetViewSet
from controlplane.serving.api.routers import (
    PoolDocumentViewSet,
    RouterPushViewSet,
    RouterViewSet,
)

__all__ = [
    "ArtefactViewSet",
    "ChangePlanViewSet",
    "DeploymentViewSet",
    "EndpointViewSet",
    "ModelFitViewSet",
    "ModelViewSet",
    "PoolDocumentViewSet",
    "PoolViewSet",
    "PresenceViewSet",
    "PresetViewSet",
    "RoleAssignmentViewSet",
    "RouterPushViewSet",
    "RouterViewSet",
    "WaveViewSet",
]
