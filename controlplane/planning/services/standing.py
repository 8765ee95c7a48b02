"""Standing advice: the measured load against the present split, every quarter of an hour.

Each look writes one finding per pool. When all findings of half an hour name the same placement and
each promises LEAST_GAIN or more, a draft of a change plan is opened, once; nothing is applied.
"""

import logging
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import msgspec
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from controlplane.common import jobs
from controlplane.common.errors import DomainError
from controlplane.operations import leases, outbox
from controlplane.planning import selectors
from controlplane.planning.models import Advice
from controlplane.planning.selectors import FleetFacts, Load
from controlplane.planning.services.plans import make_change_plan
from controlplane.planning.services.runs import plain
from controlplane.serving.models import ChangePlan, Pool
from controlplane.tenancy.models import Role, User
from controlplane.tenancy.services import people
from routing.planner.advice import Plan
from routing.planner.problem import Problem
from routing.planner.search import LEAST_GAIN, advise, gain_over_now, present_load

logger = logging.getLogger(__name__)

WINDOW = timedelta(minutes=15)
"""Of the load that is compared; beat looks as often."""
PERSISTS = timedelta(minutes=30)
"""For so long a gain must be found before a plan is drafted."""
JITTER = timedelta(minutes=1)
"""Beat's ticks are not exact."""
FEWEST_FINDINGS = 2
MOST_POOLS = 50
KEPT = timedelta(days=30)
AUTHOR = "consort-planner"
SEED = 1
PART_OF_A_RUN = 3
"""Standing advice takes a third of what a run takes: about 10 s of a core for a loaded pool."""
IDLE_LOAD = 0.5
"""Share of the bound below which the present split meets its targets, so nothing is simulated."""
LEASE_SECONDS = 300.0
"""Of one pool; longer than its task may run."""
QUIET = timedelta(days=1)
"""For so long a placement is not drafted again once its plan was refused, or rolled back."""


def ask_standing(*, now: datetime | None = None) -> int:
    """Send a task for each active pool, so that a slow one holds up no other; returns how many."""
    until = quarter_of(now or timezone.now())
    pools = Pool.objects.filter(state=Pool.State.ACTIVE).order_by("slug")
    ids = list(pools.values_list("pk", flat=True)[:MOST_POOLS])
    for pool_id in ids:
        jobs.after_commit("planning.tasks.advise_standing_of", str(pool_id), until.isoformat())
    return len(ids)


def advise_standing(*, pool_id: UUID, until: datetime, now: datetime | None = None) -> bool:
    """Look at one pool; true if a finding was written.

    A second delivery writes nothing and drafts nothing twice. One that comes when the next quarter
    is over, too, does nothing: it waited for a whole tick, and the next ones are on their way. The
    quarter's own end is no bound, as beat may tick right before it every time.
    """
    if until < quarter_of(now or timezone.now()) - WINDOW:
        return False
    pool = Pool.objects.filter(pk=pool_id, state=Pool.State.ACTIVE).select_related("model").first()
    if pool is None:
        return False
    resource = f"planning.standing.{pool_id}"
    lease = leases.acquire(resource, holder=str(uuid4()), seconds=LEASE_SECONDS)
    if lease is None:
        return False
    try:
        return _try(pool, until)
    finally:
        leases.release(lease)


def forget_standing(*, now: datetime | None = None) -> int:
    """Delete standing advice older than 30 days that no plan was made from."""
    old = Advice.objects.filter(
        is_standing=True,
        change_plan__isnull=True,
        created_at__lt=(now or timezone.now()) - KEPT,
    )
    deleted, _per_table = old.delete()
    return deleted


def quarter_of(moment: datetime) -> datetime:
    """The last full quarter of an hour; findings are named by it."""
    return moment.replace(minute=moment.minute // 15 * 15, second=0, microsecond=0)


def _try(pool: Pool, until: datetime) -> bool:
    """A look; what goes wrong is in the log, and the next quarter looks again."""
    try:
        return _look(pool, until)
    except SoftTimeLimitExceeded:
        raise
    except Exception:  # edge to the simulator, as for runs
        logger.exception("No standing advice for pool %s", pool.slug)
        return False


def _look(pool: Pool, until: datetime) -> bool:
    if Advice.objects.filter(pool=pool, is_standing=True, measured_to=until).exists():
        return False
    load = selectors.measured_load(pool, since=until - WINDOW, until=until)
    plan = _plan(pool, load) if load is not None else None
    if load is None or plan is None:
        return False
    with transaction.atomic():
        row = _finding(pool, plan, load)
        if row is None:
            return False
        outbox.emit("consort.advice.found", subject=row)
        if _persists(row):
            _draft(row)
    return True


def _plan(pool: Pool, load: Load) -> tuple[Plan, FleetFacts] | None:
    """Advice on the pool's own accelerators; None when nothing can be gained."""
    facts = selectors.fleet_facts([pool], include_idle=False)
    if not facts.groups or pool.slug not in facts.roles:
        return None
    problem = Problem(groups=facts.groups, demands=(facts.demand(pool, load.traffic),))
    if present_load(problem) <= IDLE_LOAD:
        return None
    return advise(problem, seed=SEED, requests=settings.PLANNING_REQUESTS // PART_OF_A_RUN), facts


def _finding(pool: Pool, found: tuple[Plan, FleetFacts], load: Load) -> Advice | None:
    """The row of this quarter; None when another worker wrote it first."""
    plan, facts = found
    (advice,) = plan.pools
    row, is_new = Advice.objects.get_or_create(
        pool=pool,
        is_standing=True,
        measured_to=load.until,
        defaults={
            "name": pool.slug, "verdict": advice.verdict, "gain": gain_over_now(advice),
            "content": plain(advice), "error_band": msgspec.to_builtins(plan.error),
            "members": facts.members, "measured_from": load.since,
        },
    )  # fmt: skip
    return row if is_new else None


def _persists(row: Advice) -> bool:
    """True when this and all findings of the last half hour promise the same gain."""
    if not _promises(row) or row.measured_to is None:
        return False
    since = row.measured_to - PERSISTS - JITTER
    findings = list(
        Advice.objects.filter(
            pool=row.pool,
            is_standing=True,
            measured_to__gte=since,
            measured_to__lte=row.measured_to,
        ).order_by("measured_to")
    )
    first = findings[0].measured_to
    ticks = 1 + round((row.measured_to - first) / WINDOW) if first else 0
    return (
        len(findings) >= FEWEST_FINDINGS
        and first is not None
        and row.measured_to - first >= PERSISTS - JITTER
        and len(findings) == ticks
        and all(_promises(one) and _placement(one) == _placement(row) for one in findings)
    )


def _promises(row: Advice) -> bool:
    """A change that gains enough; over roles that answer nothing in time any change does."""
    is_change = row.verdict in {Advice.Verdict.BOTH, Advice.Verdict.SPLIT}
    return is_change and (_answers_nothing_now(row) if row.gain is None else row.gain >= LEAST_GAIN)


def _answers_nothing_now(row: Advice) -> bool:
    now = [one for one in row.content["alternatives"] if one["kind"] == "now"]
    return any(one["outcome"] and one["outcome"]["goodput_rps"] <= 0 for one in now)


def _placement(row: Advice) -> object:
    return row.chosen["placement"] if row.chosen else None


def _draft(row: Advice) -> None:
    """Open a draft unless an earlier one is still open, or did not succeed of late."""
    earlier = Advice.objects.filter(
        pool=row.pool, is_standing=True, change_plan__isnull=False
    ).select_related("change_plan")
    if any(_holds_back(one, row) for one in earlier.order_by("-measured_to")[:20]):
        return
    try:
        with transaction.atomic():
            make_change_plan(advice_id=row.pk, actor=_author())
    except (DomainError, ValidationError) as error:
        logger.warning("No plan from standing advice %s: %s", row.pk, error)


def _holds_back(earlier: Advice, row: Advice) -> bool:
    plan = earlier.change_plan
    if plan is None or plan.state == ChangePlan.State.SUCCEEDED:
        return False
    is_fresh = plan.ended_at is not None and timezone.now() - plan.ended_at < QUIET
    return plan.is_open or (is_fresh and _placement(earlier) == _placement(row))


def _author() -> User:
    """Who drafts: an account without a password, which can neither log in nor approve."""
    found = User.objects.filter(username=AUTHOR).first()
    return found or people.create_user(
        username=AUTHOR, password=None, roles=[Role.ROLE_ASSIGNER], full_name="Consort planner"
    )
