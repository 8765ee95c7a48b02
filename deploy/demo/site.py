"""The demo site, modelled on a published three-vendor site, written through the product's services.

4 H100-NVL, 8 MI325X and 8 Gaudi 3 serve; nodes of three other vendors wait for a role. Prices of
hardware that nobody publishes are inputs and marked as estimates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from controlplane.finance.models import AssetCost, SiteCostPeriod
from controlplane.finance.services import inputs
from controlplane.serving.models import ChangePlan, Pool
from controlplane.serving.services import catalogue, decisions, drafting, routers
from controlplane.serving.services.drafting import PlanInput
from controlplane.tenancy.models import User
from deploy.demo.installation import Installation
from deploy.demo.options import ROUTERS
from deploy.demo.people import Login
from inventory.models import Node, Site
from inventory.services.catalogue import load_catalogue
from inventory.services.importing import import_file

POOL = "granite-chat"
MODEL = "granite-4.1-8b"
SITE_FILE = Path(__file__).parent / "site.csv"
# Prefill comes last: a pool that could answer nobody is refused.
FIRST_ROLES = (
    (("gpu-kr-07",), "decode", "The MI325X has the memory for many sequences."),
    (("gpu-kr-11",), "both", "The Gaudi 3 node serves whole requests."),
    (("gpu-kr-01", "gpu-kr-02"), "prefill", "The H100-NVL nodes compute the prompts."),
)
HISTORY_DAYS = 35
_NOTE = "Input of the demo, an estimate: no price of this node is published."


@dataclass(frozen=True)
class Price:
    """What a node of the demo cost, in US dollars."""

    capex: int
    host_watts: int


PRICES = {
    "gpu-kr-01": Price(85_000, 800),
    "gpu-kr-02": Price(85_000, 800),
    "gpu-kr-07": Price(240_000, 1_600),
    "gpu-kr-11": Price(185_000, 1_500),
    "npu-kr-21": Price(150_000, 1_200),
    "npu-kr-31": Price(60_000, 600),
    "npu-kr-41": Price(60_000, 600),
}


def write(installation: Installation, *, operator: Login) -> Pool:
    """Inventory, prices, pool and routers of the demo; what is there already stays."""
    load_catalogue()
    run = import_file(
        content=SITE_FILE.read_bytes(), file_name=SITE_FILE.name, dry_run=False, actor=operator.user
    )
    if run.error_count:
        raise SiteError(f"The site file was refused: {run.errors[0]['detail']}")
    _prices()
    pool = _pool()
    for router in ROUTERS:
        routers.register_router(
            name=router,
            admin_url=f"http://127.0.0.1:{installation.options.admin_ports[router]}",
            public_url=f"http://127.0.0.1:{installation.options.router_ports[router]}",
            token_reference=f"file:{installation.supervision.folder / f'{router}.token'}",
            actor=None,
        )
    return pool


class SiteError(Exception):
    """The demo site could not be written; the message says what was refused."""


def give_next_role(pool: Pool, *, operator: User, approver: User) -> bool:
    """Start the next of the first changes once the one before has ended; true when all have.

    Each is proposed by the operator and approved by the second person, as on the console. What
    people changed afterwards stays as they left it.
    """
    for hostnames, role, reason in FIRST_ROLES:
        plan = ChangePlan.objects.filter(pool=pool, reason=reason).order_by("serial").last()
        if plan is None:
            _change(pool, hostnames, role, reason, operator=operator, approver=approver)
            return False
        if plan.state == ChangePlan.State.FAILED:
            raise SiteError(
                f"{plan.number} failed: {plan.outcome} 'make demo-reset' starts afresh."
            )
        if plan.is_open:
            return False
    return True


def _change(
    pool: Pool, hostnames: Sequence[str], role: str, reason: str, *, operator: User, approver: User
) -> None:
    nodes = Node.objects.filter(hostname__in=hostnames)
    wish = PlanInput(
        pool_id=pool.pk,
        role=role,
        reason=reason,
        node_ids=[node.pk for node in nodes],
        accelerators_per_wave=8,
        soak_seconds=0.0,
    )
    plan = drafting.draft_plan(wish, actor=operator)
    drafting.propose_plan(plan_id=plan.pk, actor=operator)
    decisions.approve_plan(plan_id=plan.pk, actor=approver, comment="A first role of the demo.")
    decisions.apply_plan(plan_id=plan.pk, actor=operator)


def _pool() -> Pool:
    found = Pool.objects.filter(slug=POOL).first()
    if found is not None:
        return found
    (model,) = catalogue.load_catalogue(MODEL)
    return catalogue.create_pool(
        actor=None,
        slug=POOL,
        name="Granite chat",
        model=model,
        role_mode=Pool.RoleMode.DISAGGREGATED,
        engine=Pool.Engine.SIMULATED,
        policy=Pool.Policy.CONSORT,
        # Small enough to record everything, within the router's bound of ten records a second.
        recording={
            "sample_rate": 1.0,
            "shadow_policies": ["llm-d-weighted", "round-robin"],
            "shadow_rate": 0.5,
        },
        slo_ttft_p95_seconds=1.5,
        slo_tpot_p95_seconds=0.06,
        ramp_seconds=2.0,
        # Short as everything in a demo, and still to be seen.
        canary_seconds=3.0,
        currency=settings.LEDGER_CURRENCY,
    )


def _prices() -> None:
    now = timezone.now()
    in_service = (now - timedelta(days=200)).replace(hour=0, minute=0, second=0, microsecond=0)
    known = set(AssetCost.objects.values_list("node__hostname", flat=True))
    for node in Node.objects.filter(hostname__in=PRICES.keys() - known):
        price = PRICES[node.hostname]
        figures = inputs.AssetFigures(
            currency=settings.LEDGER_CURRENCY,
            capex=Decimal(price.capex),
            residual=Decimal(price.capex) / 20,
            life_months=48,
            annual_rate=Decimal("0.06"),
            in_service_at=in_service,
            host_watts=Decimal(price.host_watts),
            evidence="estimate",
            note=_NOTE,
        )
        inputs.record_asset_cost(node_id=node.pk, figures=figures, actor=None)
    _site_months(now)


def _site_months(now: datetime) -> None:
    site = Site.objects.get(slug="KR-SEO-1")
    known = set(SiteCostPeriod.objects.filter(site=site).values_list("month", flat=True))
    day = now.date().replace(day=1)
    for _ in range(HISTORY_DAYS // 28 + 2):
        if day not in known:
            inputs.record_site_cost(
                site_id=site.pk,
                month=day,
                pue=Decimal("1.35"),
                tariff_per_kwh=Decimal("0.10"),
                source="Input of the demo, an estimate.",
                actor=None,
            )
        day = (datetime(day.year, day.month, 1, tzinfo=UTC) - timedelta(days=1)).date()
        day = day.replace(day=1)
