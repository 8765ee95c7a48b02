"""Everything that can be done to models, pools, plans, engines, documents and routers."""

from controlplane.serving.services.adopting import EngineSource, adopt_engines
from controlplane.serving.services.artefacts import (
    change_artefact,
    create_artefact,
    retire_artefact,
    set_pool_artefact,
)
from controlplane.serving.services.catalogue import (
    create_model,
    create_pool,
    load_catalogue,
)
from controlplane.serving.services.decisions import (
    apply_plan,
    approve_plan,
    cancel_plan,
    pause_plan,
    reject_plan,
    resume_plan,
    rollback_plan,
)
from controlplane.serving.services.drafting import PlanInput, draft_plan, propose_plan
from controlplane.serving.services.knowledge import reset_pool_knowledge, run_knowledge_reset
from controlplane.serving.services.ledger import PastAssignment, record_past_assignment
from controlplane.serving.services.loop import (
    follow_operation,
    reconcile_pool,
    reconcile_pools,
)
from controlplane.serving.services.pool_settings import (
    change_containers,
    change_gateway_rules,
    change_policy,
    change_rollout,
    change_slo,
)
from controlplane.serving.services.publishing import publish_if_changed
from controlplane.serving.services.routers import (
    poll_routers,
    register_router,
    set_router_enabled,
)
from controlplane.serving.services.static_engines import register_static_engine
from controlplane.serving.services.workloads import workload_logs

__all__ = [
    "EngineSource",
    "PastAssignment",
    "PlanInput",
    "adopt_engines",
    "apply_plan",
    "approve_plan",
    "cancel_plan",
    "change_artefact",
    "change_containers",
    "change_gateway_rules",
    "change_policy",
    "change_rollout",
    "change_slo",
    "create_artefact",
    "create_model",
    "create_pool",
    "draft_plan",
    "follow_operation",
    "load_catalogue",
    "pause_plan",
    "poll_routers",
    "propose_plan",
    "publish_if_changed",
    "reconcile_pool",
    "reconcile_pools",
    "record_past_assignment",
    "register_router",
    "register_static_engine",
    "reject_plan",
    "reset_pool_knowledge",
    "resume_plan",
    "retire_artefact",
    "rollback_plan",
    "run_knowledge_reset",
    "set_pool_artefact",
    "set_router_enabled",
    "workload_logs",
]
