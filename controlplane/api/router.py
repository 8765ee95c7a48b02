"""Every resource of the API, one line each. Apps own their viewsets (`<app>/api.py`)."""

from typing import Any

from rest_framework.routers import SimpleRouter
from rest_framework.viewsets import GenericViewSet

from controlplane.api.resource import ResourceBehaviour
from controlplane.api.system import SystemViewSet
from controlplane.audit.api import AuditEntryViewSet
from controlplane.decisions import api as decisions
from controlplane.finance import api as finance
from controlplane.metering import api as metering
from controlplane.operations.api import OperationViewSet
from controlplane.planning import api as planning
from controlplane.serving import api as serving
from controlplane.telemetry import api as telemetry
from controlplane.tenancy.api import (
    ApiTokenViewSet,
    InferenceKeyViewSet,
    OrganisationViewSet,
    ProjectViewSet,
    TenantViewSet,
)
from inventory import api as inventory


class Router(SimpleRouter):
    """Plural kebab-case paths; a slash at the end is accepted and never redirected to."""

    def __init__(self) -> None:
        super().__init__()
        self.trailing_slash = "/?"

    def resource(self, prefix: str, viewset: type[GenericViewSet[Any]]) -> None:
        """Serve a viewset, with what every resource does mixed in; see `resource.py`."""
        served = type(
            viewset.__name__,
            (viewset, ResourceBehaviour),
            {"__doc__": viewset.__doc__, "__module__": viewset.__module__},
        )
        self.register(prefix, served, basename=prefix)


router = Router()
router.resource("organisations", OrganisationViewSet)
router.resource("tenants", TenantViewSet)
router.resource("projects", ProjectViewSet)
router.resource("inference-keys", InferenceKeyViewSet)
router.resource("api-tokens", ApiTokenViewSet)
router.resource("audit-entries", AuditEntryViewSet)
router.resource("operations", OperationViewSet)
router.resource("system", SystemViewSet)
router.resource("sites", inventory.SiteViewSet)
router.resource("clusters", inventory.ClusterViewSet)
router.resource("vendors", inventory.VendorViewSet)
router.resource("accelerator-models", inventory.AcceleratorModelViewSet)
router.resource("node-types", inventory.NodeTypeViewSet)
router.resource("nodes", inventory.NodeViewSet)
router.resource("accelerators", inventory.AcceleratorViewSet)
router.resource("observations", inventory.ObservationViewSet)
router.resource("findings", inventory.FindingViewSet)
router.resource("imports", inventory.ImportViewSet)
router.resource("models", serving.ModelViewSet)
router.resource("model-artefacts", serving.ArtefactViewSet)
router.resource("artefact-presences", serving.PresenceViewSet)
router.resource("presets", serving.PresetViewSet)
router.resource("model-fit", serving.ModelFitViewSet)
router.resource("pools", serving.PoolViewSet)
router.resource("role-assignments", serving.RoleAssignmentViewSet)
router.resource("change-plans", serving.ChangePlanViewSet)
router.resource("waves", serving.WaveViewSet)
router.resource("deployments", serving.DeploymentViewSet)
router.resource("endpoints", serving.EndpointViewSet)
router.resource("pool-documents", serving.PoolDocumentViewSet)
router.resource("routers", serving.RouterViewSet)
router.resource("router-pushes", serving.RouterPushViewSet)
router.resource("telemetry/sources", telemetry.SourceViewSet)
router.resource("engine-counters", telemetry.EngineCounterViewSet)
router.resource("engine-hours", telemetry.EngineHourViewSet)
router.resource("utilisation", telemetry.UtilisationViewSet)
router.resource("alerts", telemetry.AlertViewSet)
router.resource("usage", metering.UsageViewSet)
router.resource("usage-hours", metering.UsageHourViewSet)
router.resource("usage-segments", metering.UsageSegmentViewSet)
router.resource("usage-refusals", metering.SegmentRefusalViewSet)
router.resource("usage-routers", metering.UsageRouterViewSet)
router.resource("reconciliations", metering.ReconciliationViewSet)
router.resource("routing/decisions", decisions.DecisionViewSet)
router.resource("routing/shadow", decisions.ShadowViewSet)
router.resource("routing/pairs", decisions.PairViewSet)
router.resource("routing/readings", decisions.RouterReadingViewSet)
router.resource("routing/explain", decisions.ExplainViewSet)
router.resource("routing/replay", decisions.ReplayViewSet)
router.resource("routing/test", decisions.TestViewSet)
router.resource("ledger-hours", finance.LedgerHourViewSet)
router.resource("asset-costs", finance.AssetCostViewSet)
router.resource("site-cost-periods", finance.SiteCostPeriodViewSet)
router.resource("node-costs", finance.NodeCostViewSet)
router.resource("unit-costs", finance.UnitCostViewSet)
router.resource("policy-comparisons", finance.PolicyComparisonViewSet)
router.resource("scenarios", planning.ScenarioViewSet)
router.resource("scenario-runs", planning.ScenarioRunViewSet)
router.resource("advice", planning.AdviceViewSet)
router.resource("savings-calculator", planning.SavingsCalculatorViewSet)
