"""A whole small site for pages: fleet, pool, roles, engines, routers, usage, costs, plans."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from controlplane.decisions import services as decisions
from controlplane.decisions.models import Decision
from controlplane.finance.models import AssetCost, ClassHour, LedgerHour
from controlplane.metering import digest
from controlplane.metering.models import UsageHour
from controlplane.operations.models import Operation
from controlplane.planning.models import ScenarioRun
from controlplane.serving.models import (
    AssignedAccelerator,
    ChangePlan,
    Endpoint,
    Model,
    Pool,
    PoolDocument,
    RoleAssignment,
    Router,
    RouterPush,
    Workload,
)
from controlplane.telemetry.models import Alert, UtilisationHour
from controlplane.tenancy.models import User
from inventory.models import Accelerator, AcceleratorModel, Cluster, Finding, Node, NodeType, Site
from inventory.models import Observation as Seen
from routing.core.document import encode_document
from tests.controlplane.console.scene_plans import make_plan, move_waves
from tests.controlplane.decisions.records import Desk, document
from tests.controlplane.planning.recorded import make_recorded_run
from tests.factories import make_ana, make_user

FLEET = [
    ("gpu-01", "nvidia-h100-nvl", "prefill", 2),
    ("gpu-02", "nvidia-h100-nvl", "prefill", 2),
    ("gpu-07", "amd-mi325x", "decode", 8),
    ("gpu-11", "intel-gaudi3", "both", 8),
    ("npu-21", "huawei-ascend-910b", "", 8),
    ("npu-31", "rebellions-atom-max", "", 4),
    ("npu-41", "furiosa-rngd", "", 4),
]
_VENDORS = {
    "nvidia-h100-nvl": ("nvidia", "H100-NVL", 94),
    "amd-mi325x": ("amd", "MI325X", 256),
    "intel-gaudi3": ("intel-gaudi", "Gaudi 3", 128),
    "huawei-ascend-910b": ("huawei-ascend", "910B", 64),
    "rebellions-atom-max": ("rebellions", "ATOM-Max", 64),
    "furiosa-rngd": ("furiosa", "RNGD", 48),
}
_CONTRACT = {
    "engine": "simulated", "engine_version": "1", "connector": "nixl", "connector_version": "1",
    "transport": "host-staged", "model_revision": "r1", "kv_dtype": "bf16", "kv_heads": 8,
    "head_size": 128, "tensor_parallel": 1, "pipeline_parallel": 1, "fabric": "eth",
    "staging_device": "cpu", "transfer_bytes_per_second": 12.5e9, "attention_backend": "x",
    "layout": "nhd", "block_size_tokens": 16,
}  # fmt: skip


@dataclass(slots=True)
class Scene:
    """What the tests name."""

    operator: User
    approver: User
    tenant_user: User
    nodes: list[Node]
    kubernetes: Cluster
    """It was tested, and is silent by now."""
    pool: Pool
    plan: ChangePlan
    applying: ChangePlan
    operation: Operation
    decision: Decision
    run: ScenarioRun


def make_scene(*, now: datetime | None = None, prefix: str = "") -> Scene:
    """Every row that a page shows, in every state that a page tells apart."""
    now = now or datetime.now(UTC)
    operator = make_user(
        f"{prefix}olga", "fleet-operator", "role-assigner", "router-engineer", "finance",
        "readonly", "auditor", full_name="Olga Operator",
    )  # fmt: skip
    approver = make_user(
        f"{prefix}min-jun", "approver", "readonly", "finance", full_name="Min-jun Lee"
    )
    site = Site.objects.create(
        slug="kr-seo-1", name="Seoul", country="KR", jurisdiction="KR", pue=Decimal("1.3"),
        tariff_per_kwh=Decimal("0.12"), currency="USD",
    )  # fmt: skip
    cluster = Cluster.objects.create(
        slug="seoul-1", name="Seoul 1", kind="local", site=site, answered_at=now
    )
    model = Model.objects.create(
        slug="granite-4.1-8b", name="granite-4.1-8b", max_model_len=131072, layers=40, hidden=4096,
        kv_bytes_per_token=163840, weight_bytes=16_400_000_000, flops_per_token=1.6e10,
        attention_flops_per_token_per_context_token=655360,
    )  # fmt: skip
    pool = Pool.objects.create(
        slug="granite-chat", name="granite-chat", model=model, role_mode="disaggregated",
        slo_ttft_p95_seconds=1.0, slo_tpot_p95_seconds=0.06, currency="USD", reconciled_at=now,
        conditions=[{"type": "Serving", "status": "True", "reason": "completions", "message": ""}],
    )  # fmt: skip
    nodes = [_node(cluster, now, *row) for row in FLEET]
    for node, (_name, _model, role, _count) in zip(nodes, FLEET, strict=True):
        if role:
            _assign(node, pool, role, now)
    _routers(pool, operator, now)
    _usage(pool, nodes, now)
    _costs(nodes, now)
    _trouble(nodes, now)
    operation = Operation.objects.create(
        kind="serving.apply-plan", task="serving.tasks.follow_plan", created_by=operator,
        state="running", progress_total=3, progress_done=1, subject_repr="CP-0046",
    )  # fmt: skip
    operation.steps.create(position=1, name="wave 1", state="succeeded", started_at=now)
    operation.steps.create(position=2, name="wave 2", state="running", started_at=now)
    decision = _decisions(pool, now)
    plan = make_plan(46, pool, operator, nodes[1], now, state="proposed", proposed_at=now)
    applying = make_plan(
        45, pool, operator, nodes[3], now, state="applying", applied_at=now, operation=operation
    )
    move_waves(applying, now)
    make_plan(
        41, pool, operator, nodes[0], now, state="rolled_back", ended_at=now - timedelta(days=4),
        outcome="TTFT p95 is at least 1.62 s; the guard is 1.2 s.", simulated=True,
    )  # fmt: skip
    return Scene(
        operator=operator, approver=approver, tenant_user=make_ana(), nodes=nodes,
        kubernetes=_silent_cluster(site, operator, now), pool=pool,
        plan=plan, applying=applying, operation=operation, decision=decision,
        run=make_recorded_run(operator, pool=pool),
    )  # fmt: skip


def _decisions(pool: Pool, now: datetime) -> Decision:
    """Decisions of a real core: answered, failed, open and refused, with a shadow policy."""
    content = document(pool=pool.slug, version=130)
    PoolDocument.objects.create(
        pool=pool, version=130, content=encode_document(content).decode(), sha256="ab" * 32,
        body_sha256="c" * 64,
    )  # fmt: skip
    desk = Desk(content)
    good = {"outcome": "ok", "status": 200, "ttft_seconds": 0.093, "cached_tokens": 640}
    first = desk.decide(outcome=good, tenant="hanbit-bank")
    desk.decide(outcome=good | {"outcome": "error", "status": 502}, tenant="narae-health")
    desk.decide(tenant="narae-health", text="group 0 " * 1500)
    desk.decide(tenant="narae-health", model="other", text="x")
    for line in desk.lines:
        line["recorded_at"] = now.timestamp() - 1
    page = desk.page(sample_rates={pool.slug: 0.02}, left_out=3)
    decisions.take_in(page, router="router-a")
    return Decision.objects.get(decision_id=first["id"])


def _silent_cluster(site: Site, operator: User, now: datetime) -> Cluster:
    """A Kubernetes cluster that answered once, lacks rights and kinds, and is silent since."""
    asked = now - timedelta(minutes=3)
    cluster = Cluster.objects.create(
        slug="seoul-k8s", name="Seoul, hall 2", kind="kubernetes", site=site,
        connection_reference="seoul-k8s", asked_at=asked, answered_at=now - timedelta(hours=1),
        tested_at=now - timedelta(hours=1), version="v1.36.2", failures=3,
        retry_at=now + timedelta(seconds=20), error="etcdserver: no leader",
        error_code="cluster-unavailable", missing_rights=["list nodes", "get pods/log in serving"],
        kinds=[["v1", "Node"], ["v1", "Pod"], ["v1", "Service"], ["apps/v1", "Deployment"]],
    )  # fmt: skip
    test = Operation.objects.create(
        kind="inventory.test-connection", task="inventory.tasks.run_connection_test",
        created_by=operator, state="succeeded", finished_at=now, subject_id=str(cluster.pk),
        subject_repr=cluster.slug,
    )  # fmt: skip
    test.steps.create(
        position=1, name="ask for the version", state="succeeded", detail="v1.36.2",
        started_at=asked, finished_at=asked,
    )  # fmt: skip
    return cluster


def _node(cluster: Cluster, now: datetime, hostname: str, slug: str, role: str, count: int) -> Node:
    vendor, name, memory = _VENDORS[slug]
    model, _made = AcceleratorModel.objects.get_or_create(
        slug=slug,
        defaults={
            "vendor": vendor, "name": name, "memory_bytes": memory * 10**9, "tdp_watts": 400.0,
            "figures": {
                "memory_bytes": {
                    "value": memory * 10**9, "source": "data sheet", "confidence": "vendor",
                },
                "fp8_tflops": {"value": None, "source": "not published", "confidence": "low"},
            },
        },
    )  # fmt: skip
    kind, _made = NodeType.objects.get_or_create(
        slug=f"{slug}-x{count}",
        defaults={
            "name": f"{count} x {name}", "vendor": vendor, "accelerator_model": model,
            "accelerator_count": count,
        },
    )  # fmt: skip
    silent = hostname == "npu-41"
    seen = {
        "health": "unknown" if silent else "healthy",
        "health_reason": "stale" if silent else "",
        "observed_at": now - timedelta(minutes=24 if silent else 0, seconds=10),
        "health_since": now - timedelta(minutes=24),
    }
    node = Node.objects.create(
        cluster=cluster, node_type=kind, vendor=vendor, hostname=hostname, rack="A-02",
        delivered_at=now - timedelta(days=40), **seen,
    )  # fmt: skip
    Accelerator.objects.bulk_create(
        Accelerator(
            node=node, model=model, vendor=vendor, slot=slot, serial=f"{hostname}-{slot:02d}",
            observed_name=name, observed_memory_total_mib=memory * 1000,
            observed_memory_used_mib=memory * 700, observed_utilisation=0.5 if role else 0.0,
            observed_power_watts=None if vendor == "rebellions" else 310.0 if role else 92.0,
            observed_temperature_celsius=58.0, **seen,
        )
        for slot in range(count)
    )  # fmt: skip
    return node


def _assign(node: Node, pool: Pool, role: str, now: datetime) -> None:
    past = RoleAssignment.objects.create(
        pool=pool, node=node, role="both", valid_from=now - timedelta(days=30),
        valid_to=now - timedelta(days=6), reason="first roles", simulated=True,
    )  # fmt: skip
    current = RoleAssignment.objects.create(
        pool=pool, node=node, role=role, valid_from=now - timedelta(days=6), reason="split"
    )
    devices = list(node.accelerators.order_by("slot"))
    AssignedAccelerator.objects.bulk_create(
        AssignedAccelerator(assignment=assignment, accelerator=device, open=assignment is current)
        for device in devices
        for assignment in (past, current)
    )
    workloads = Workload.objects.bulk_create(
        Workload(
            name=f"{node.hostname}-{device.slot}", pool=pool, assignment=current, node=node,
            accelerator=device, target="local", role=role, desired_state="running",
        )
        for device in devices
    )  # fmt: skip
    Endpoint.objects.bulk_create(
        Endpoint(
            workload=workload, pool=pool, node=node, role=role, engine="simulated", pid=4000,
            url=f"http://127.0.0.1:{9000 + workload.accelerator.slot}", state="ready",
            instance=f"{workload.name}@1", observed_at=now, ready_at=now, kv_contract=_CONTRACT,
        )
        for workload in workloads
    )  # fmt: skip


def _routers(pool: Pool, author: User, now: datetime) -> None:
    document = PoolDocument.objects.create(
        pool=pool, version=131, content="{}", sha256="9f3c71d0" * 8, body_sha256="a" * 64,
        author=author, reason="roles changed",
    )  # fmt: skip
    for name, port in (("router-a", 8401), ("router-b", 8402)):
        router = Router.objects.create(
            name=name, admin_url=f"http://127.0.0.1:{port}", token_reference="env:TOKEN",
            public_url=f"http://127.0.0.1:{port + 10}", heard_at=now, started_at=now,
            software_version="0.1.0", documents={pool.slug: {"version": 131}},
            observed={"requests": {"total": 32118, "failed": 0}},
        )  # fmt: skip
        RouterPush.objects.create(
            router=router, document=document, state="acknowledged", sent_at=now, ended_at=now,
            attempts=1,
        )  # fmt: skip


def _usage(pool: Pool, nodes: list[Node], now: datetime) -> None:
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    hours = [this_hour - timedelta(hours=back) for back in range(24) if back not in (9, 10)]
    UsageHour.objects.bulk_create(
        UsageHour(
            **dict.fromkeys([*UsageHour.BUCKETS, *UsageHour.COUNTS, *UsageHour.WASTE], 0)
            | {
                "requests": 3000, "requests_ok": 3000, "input_uncached": 4_000_000,
                "cache_read": 17_000_000, "output": 450_000,
            },
            hour=hour, tenant="haneul", project="chat", key="k", pool=pool.slug,
            node=nodes[2].hostname, role="decode", model="granite-4.1-8b", policy="consort",
            source="simulated", first_request_at=hour, last_response_at=hour,
            ttft_digest=digest.digest_of([0.2 + 0.01 * number for number in range(20)]),
            tpot_digest=digest.digest_of([0.03 + 0.001 * number for number in range(20)]),
        )
        for hour in hours
    )  # fmt: skip
    UtilisationHour.objects.bulk_create(
        UtilisationHour(
            accelerator=device, hour=hour, utilisation=0.55, memory_usage=0.7, samples=700,
            expected_samples=720, source="simulated", power_watts=None,
        )
        for device in Accelerator.objects.filter(node__in=nodes[:6])
        for hour in hours
    )  # fmt: skip
    UtilisationHour.objects.bulk_create(
        UtilisationHour(
            accelerator=device, hour=this_hour, samples=0, expected_samples=720,
            source="simulated", not_scraped_since=now - timedelta(minutes=24),
        )
        for device in nodes[6].accelerators.all()
    )  # fmt: skip


def _costs(nodes: list[Node], now: datetime) -> None:
    this_hour = now.replace(minute=0, second=0, microsecond=0)
    assets = AssetCost.objects.bulk_create(
        AssetCost(
            node=node, version=1, valid_from=now - timedelta(days=60), currency="USD",
            capex=Decimal(200000), life_months=60, annual_rate=Decimal("0.06"),
            in_service_at=now - timedelta(days=60),
        )
        for node in nodes
    )  # fmt: skip
    rows = LedgerHour.objects.bulk_create(
        LedgerHour(
            node=asset.node, hour=this_hour - timedelta(hours=back), seconds=3600, currency="USD",
            depreciation=Decimal("4.5"), finance=Decimal("1.2"), power=Decimal("0.6"),
            total=Decimal("6.3"), kilowatts=Decimal("4.2"), power_source="estimated",
            pue=Decimal("1.3"), tariff_per_kwh=Decimal("0.12"), asset_cost=asset,
            source="simulated",
        )
        for asset in assets
        for back in range(30)
    )  # fmt: skip
    roles = {hostname: role for hostname, _model, role, _count in FLEET}
    ClassHour.objects.bulk_create(
        ClassHour(
            ledger_hour=row, cost_class="assigned" if roles[row.node.hostname] else "idle",
            role=roles[row.node.hostname], amount=Decimal("6.3"),
            pool="granite-chat" if roles[row.node.hostname] else "",
            accelerator_seconds=3600 * row.node.node_type.accelerator_count,
        )
        for row in rows
    )  # fmt: skip


def _trouble(nodes: list[Node], now: datetime) -> None:
    slow = nodes[3].accelerators.get(slot=5)
    slow.health, slow.health_reason = "degraded", "vendor-report"
    slow.save()
    Alert.objects.create(
        kind="slower_than_class", fingerprint="slow", node=nodes[3], accelerator=slow,
        since=now - timedelta(days=2), opened_at=now, source="simulated",
        facts={"share_of_class": 0.33, "class_median": 930.0},
    )  # fmt: skip
    Alert.objects.create(
        kind="exporter_silent", fingerprint="silent", node=nodes[6], source="simulated",
        since=now - timedelta(minutes=24), opened_at=now,
    )  # fmt: skip
    seen = Seen.objects.create(
        cluster=nodes[4].cluster, node=nodes[4], hostname=nodes[4].hostname, source="agent",
        vendor=nodes[4].vendor, seen_at=now, content={},
    )  # fmt: skip
    Finding.objects.create(
        cluster=nodes[4].cluster, node=nodes[4], observation=seen, hostname=nodes[4].hostname,
        slot=2, kind="serial-differs", intended="A", observed="B", seen_at=now,
    )  # fmt: skip
