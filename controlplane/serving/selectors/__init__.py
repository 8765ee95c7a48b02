"""Reads of serving."""

from controlplane.serving.selectors.fits import ModelFit, Question, model_fits
from controlplane.serving.selectors.fleet import (
    accelerators_of,
    open_roles,
    pool_state,
    serving_count,
)
from controlplane.serving.selectors.manifests import POLICIES as EXPORT_POLICIES
from controlplane.serving.selectors.manifests import ManifestQuestion, pool_manifests
from controlplane.serving.selectors.viewers import (
    assignments_for_viewer,
    documents_for_viewer,
    endpoints_for_viewer,
    models_for_viewer,
    plans_for_viewer,
    pools_for_viewer,
    pushes_for_viewer,
    routers_for_viewer,
    waves_for_viewer,
    workloads_for_viewer,
)

__all__ = [
    "EXPORT_POLICIES",
    "ManifestQuestion",
    "ModelFit",
    "Question",
    "accelerators_of",
    "assignments_for_viewer",
    "documents_for_viewer",
    "endpoints_for_viewer",
    "model_fits",
    "models_for_viewer",
    "open_roles",
    "plans_for_viewer",
    "pool_manifests",
    "pool_state",
    "pools_for_viewer",
    "pushes_for_viewer",
    "routers_for_viewer",
    "serving_count",
    "waves_for_viewer",
    "workloads_for_viewer",
]
