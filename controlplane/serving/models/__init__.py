"""Tables of serving: what should run where, in which role, and what routers know of it."""

from controlplane.serving.models.artefact import ArtefactPresence, ModelArtefact
from controlplane.serving.models.assignment import AssignedAccelerator, Role, RoleAssignment
from controlplane.serving.models.catalogue import Model, Pool
from controlplane.serving.models.deployment import Endpoint, ProbeRecord, Workload
from controlplane.serving.models.plan import Approval, ChangePlan, Wave
from controlplane.serving.models.router import PoolDocument, Router, RouterPush

__all__ = [
    "Approval",
    "ArtefactPresence",
    "AssignedAccelerator",
    "ChangePlan",
    "Endpoint",
    "Model",
    "ModelArtefact",
    "Pool",
    "PoolDocument",
    "ProbeRecord",
    "Role",
    "RoleAssignment",
    "Router",
    "RouterPush",
    "Wave",
    "Workload",
]
