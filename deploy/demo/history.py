"""Thirty-five days that the demo site never had: utilisation, usage, roles, ledger.

Every row is marked simulated. Three facts are planted for a visitor to find: an accelerator three
times slower than its sisters, an exporter gone silent, and a change that rolled itself back. What
can be computed is computed by the product: the ledger by its service, alerts by theirs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from django.db import transaction

from controlplane.finance import services as finance
from controlplane.finance.models import LedgerHour
from controlplane.metering.models import UsageHour
from controlplane.serving.models import ChangePlan, Pool, RoleAssignment
from controlplane.serving.services.ledger import PastAssignment, record_past_assignment
from controlplane.telemetry import services as telemetry
from controlplane.telemetry.models import EngineHour, Evidence, ScrapeTarget, UtilisationHour
from deploy.demo import past_plan
from deploy.demo.copying import Row, copy_rows
from deploy.demo.past_load import (
    PROMPT_TOKENS,
    SPEEDS,
    AcceleratorHour,
    answering_hour,
    latency,
    load_at,
    prefill_hour,
    shared_out,
)
from inventory.models import Accelerator, Node

SEED = 20_261
HOUR = timedelta(hours=1)
ROLES = {"gpu-kr-01": "prefill", "gpu-kr-02": "prefill", "gpu-kr-07": "decode", "gpu-kr-11": "both"}
IDLE = ("npu-kr-21", "npu-kr-31", "npu-kr-41")
SLOW = ("gpu-kr-11", 5)
SLOW_SINCE = timedelta(days=14)
SILENT = "npu-kr-41"
SILENT_SINCE = timedelta(days=5, hours=7)
ROLLED_BACK_BEFORE = timedelta(days=9, hours=3)
ROLLED_BACK_FOR = timedelta(minutes=24)
ROLLED_BACK_SLOTS = (0, 1, 2, 3)
TENANTS = {"hanbit": ("research", 0.65), "nuri": ("chat", 0.35)}
EXPECTED_SAMPLES = 720


@dataclass(frozen=True, slots=True)
class Past:
    """The period, and the part of the fleet that it is about."""

    start: datetime
    end: datetime
    pool: Pool
    nodes: Mapping[str, Node]
    accelerators: Mapping[str, Sequence[Accelerator]]

    @property
    def slow_since(self) -> datetime:
        """When the slow accelerator became slow."""
        return self.end - SLOW_SINCE

    @property
    def silent_since(self) -> datetime:
        """When the exporter fell silent."""
        return self.end - SILENT_SINCE

    @property
    def changed_at(self) -> datetime:
        """When the change that rolled itself back switched its first wave."""
        return self.end - ROLLED_BACK_BEFORE

    def hours(self) -> Iterator[datetime]:
        """Starts of the hours, oldest first."""
        hour = self.start
        while hour < self.end:
            yield hour
            hour += HOUR


def write_history(*, until: datetime, days: int = 35) -> bool:
    """Write the past of the demo site once; False if it is there already.

    It ends with the last full hour before `until`, and before the first role that was really given,
    so that no two periods of an accelerator overlap. A run that was interrupted is completed by the
    next one. Nothing is locked for long, because engines start meanwhile.
    """
    past = _past(until=until, days=days)
    if LedgerHour.objects.filter(hour=past.start, source=Evidence.SIMULATED).exists():
        return False
    _write_loads(past)
    _write_roles(past)
    finance.recompute_ledger(
        start=past.start, end=past.end, now=past.end, source=Evidence.SIMULATED
    )
    telemetry.detect_alerts(now=until)
    return True


def _past(*, until: datetime, days: int) -> Past:
    told = RoleAssignment.objects.filter(simulated=True).order_by("valid_from")
    first, last = told.first(), told.order_by("-valid_to").first()
    if first is not None and last is not None and last.valid_to is not None:
        start, end = first.valid_from, last.valid_to
    else:
        given = RoleAssignment.objects.order_by("valid_from").first()
        end = min(until, given.valid_from) if given else until
        end = end.replace(minute=0, second=0, microsecond=0)
        start = end - timedelta(days=days)
    nodes = {node.hostname: node for node in Node.objects.filter(hostname__in=[*ROLES, *IDLE])}
    accelerators: dict[str, list[Accelerator]] = {name: [] for name in nodes}
    rows = Accelerator.objects.filter(node__in=nodes.values(), retired_at__isnull=True)
    for row in rows.select_related("node").order_by("slot"):
        accelerators[row.node.hostname].append(row)
    pool = Pool.objects.order_by("created_at").first()
    if pool is None or nodes.keys() != {*ROLES, *IDLE}:
        raise LookupError("The history needs the demo site: its pool and its seven nodes.")
    return Past(start, end, pool, nodes, accelerators)


@transaction.atomic
def _write_loads(past: Past) -> None:
    """Hours of accelerators, engines and keys; all of them, or what an earlier run wrote stays."""
    if EngineHour.objects.filter(hour=past.start, source=Evidence.SIMULATED).exists():
        return
    rng = np.random.default_rng(SEED)
    utilisation: list[Row] = []
    engines: list[Row] = []
    usage: list[Row] = []
    for hour in past.hours():
        load = load_at(hour, float(rng.standard_normal()))
        seen = _node_hours(past, hour, load, rng)
        for hostname, rows in seen.items():
            for accelerator, row in zip(past.accelerators[hostname], rows, strict=True):
                role = _role_at(past, hostname, accelerator.slot, hour)
                utilisation.append(_utilisation(past, accelerator, hour, row, role))
                engines.append(_engine(past, accelerator, hour, row, role))
        utilisation += _idle_hours(past, hour)
        usage += _usage(past, hour, load, seen, rng)
    copy_rows(UtilisationHour, utilisation)
    copy_rows(EngineHour, engines)
    copy_rows(UsageHour, usage)
    _silent_exporter(past)


def _node_hours(
    past: Past, hour: datetime, load: float, rng: np.random.Generator
) -> dict[str, list[AcceleratorHour]]:
    """What the accelerators of the serving nodes did, by hostname in the order of slots."""
    seen: dict[str, list[AcceleratorHour]] = {}
    for hostname in ("gpu-kr-07", "gpu-kr-11"):
        slow_slot = SLOW[1] if hostname == SLOW[0] and hour >= past.slow_since else None
        seen[hostname] = [
            answering_hour(ROLES[hostname], load, rng, slow=accelerator.slot == slow_slot)
            for accelerator in past.accelerators[hostname]
        ]
    prefill = [name for name, role in ROLES.items() if role == "prefill"]
    count = sum(len(past.accelerators[name]) for name in prefill)
    computed = sum(row.transferred_tokens for row in seen["gpu-kr-07"])
    parts = iter(shared_out(computed, [1 + 0.05 * rng.random() for _ in range(count)]))
    for hostname in prefill:
        seen[hostname] = [
            prefill_hour(tokens, max(1, tokens // PROMPT_TOKENS), load, rng)
            for tokens in (next(parts) for _ in past.accelerators[hostname])
        ]
    return seen


def _role_at(past: Past, hostname: str, slot: int, hour: datetime) -> str:
    """Role of an accelerator at the start of an hour; the failed change lasted under an hour."""
    changed = hostname == SLOW[0] and slot in ROLLED_BACK_SLOTS
    inside = past.changed_at <= hour < past.changed_at + ROLLED_BACK_FOR
    return "decode" if changed and inside else ROLES[hostname]


def _utilisation(
    past: Past, accelerator: Accelerator, hour: datetime, row: AcceleratorHour, role: str
) -> Row:
    return {
        "accelerator_id": accelerator.pk,
        "hour": hour,
        "utilisation": row.busy,
        "memory_usage": row.memory,
        "output_tokens_per_second": None if role == "prefill" else row.output_tokens_per_second,
        "samples": row.samples,
        "expected_samples": EXPECTED_SAMPLES,
        "role": role,
        "pool": past.pool.slug,
        "source": Evidence.SIMULATED,
        "not_scraped_since": None,
    }


def _engine(
    past: Past, accelerator: Accelerator, hour: datetime, row: AcceleratorHour, role: str
) -> Row:
    name = f"{accelerator.node.hostname}-{accelerator.slot}"
    return {
        "endpoint": name,
        "instance": f"{name}-past",
        "pool": past.pool.slug,
        "role": role,
        "node_id": accelerator.node_id,
        "accelerator_count": 1,
        "hour": hour,
        "samples": row.samples,
        "expected_samples": EXPECTED_SAMPLES,
        "busy_seconds": row.busy * row.samples * 5,
        "observed_seconds": row.samples * 5.0,
        "prompt_tokens": row.prompt_tokens,
        "prompt_computed_tokens": row.computed_tokens,
        "prompt_cached_tokens": row.cached_tokens,
        "prompt_transferred_tokens": row.transferred_tokens,
        "generation_tokens": row.output_tokens,
        "prefix_queries": row.prompt_tokens,
        "prefix_hits": row.cached_tokens,
        "prefill_seconds": row.prefill_seconds,
        "decode_seconds": row.decode_seconds,
        "source": Evidence.SIMULATED,
    }


def _idle_hours(past: Past, hour: datetime) -> Iterator[Row]:
    """Accelerators without a role: measured and idle, but for the silent exporter."""
    for hostname in IDLE:
        silent = hostname == SILENT and hour >= past.silent_since
        for accelerator in past.accelerators[hostname]:
            yield {
                "accelerator_id": accelerator.pk,
                "hour": hour,
                "utilisation": None if silent else 0.0,
                "memory_usage": None,
                "output_tokens_per_second": None,
                "samples": 0 if silent else EXPECTED_SAMPLES,
                "expected_samples": EXPECTED_SAMPLES,
                "role": "",
                "pool": "",
                "source": Evidence.SIMULATED,
                "not_scraped_since": past.silent_since if silent else None,
            }


def _usage(
    past: Past,
    hour: datetime,
    load: float,
    seen: Mapping[str, Sequence[AcceleratorHour]],
    rng: np.random.Generator,
) -> Iterator[Row]:
    """Hours of usage by tenant and answering node; they sum to what the engines counted."""
    shares = [share * (1 + 0.1 * rng.standard_normal()) for _, share in TENANTS.values()]
    troubled = past.changed_at <= hour + HOUR and hour < past.changed_at + ROLLED_BACK_FOR
    for hostname in ("gpu-kr-07", "gpu-kr-11"):
        rows, speed = seen[hostname], SPEEDS[ROLES[hostname]]
        queueing = (1 + 1.6 * load**3) * (2.6 if troubled and hostname == SLOW[0] else 1.0)
        parts = zip(
            TENANTS.items(),
            shared_out(sum(row.requests for row in rows), shares),
            shared_out(sum(row.prompt_tokens - row.cached_tokens for row in rows), shares),
            shared_out(sum(row.cached_tokens for row in rows), shares),
            shared_out(sum(row.output_tokens for row in rows), shares),
            strict=True,
        )
        for (tenant, (project, _)), requests, uncached, cached, output in parts:
            yield {
                "hour": hour,
                "tenant": tenant,
                "project": project,
                "key": f"past-{project}",
                "pool": past.pool.slug,
                "node": hostname,
                "role": ROLES[hostname],
                "model": past.pool.model.slug,
                "policy": "consort",
                "source": Evidence.SIMULATED,
                "requests": requests,
                "requests_ok": requests,
                "input_uncached": uncached,
                "cache_read": cached,
                "output": output,
                "ttft_digest": latency(requests, median=speed.ttft_median * queueing, width=0.55),
                "tpot_digest": latency(requests, median=speed.tpot_median * queueing, width=0.20),
                "first_request_at": hour,
                "last_response_at": hour + HOUR - timedelta(seconds=1),
                **dict.fromkeys(_NOTHING, 0),
            }


_NOTHING = (
    "requests_failed", "requests_aborted", "requests_refused", "attempts_retried", "cache_write",
    "reasoning", "waste_input_uncached", "waste_cache_read", "waste_output", "counted_by_router",
    "uncounted",
)  # fmt: skip


def _silent_exporter(past: Past) -> None:
    """The source that has fallen silent; nobody answers at its address."""
    target, _ = ScrapeTarget.objects.get_or_create(
        kind=ScrapeTarget.Kind.EXPORTER,
        node=past.nodes[SILENT],
        defaults={
            "url": f"http://{SILENT}:9200/metrics",
            "source": Evidence.SIMULATED,
            "last_ok_at": past.silent_since,
            "failing_since": past.silent_since,
            "last_error": "No answer within 3 s.",
        },
    )
    target.accelerators.set(past.accelerators[SILENT])
    ScrapeTarget.objects.filter(pk=target.pk).update(created_at=past.start)


@transaction.atomic
def _write_roles(past: Past) -> None:
    """The role ledger of the past with the change that rolled itself back."""
    if RoleAssignment.objects.filter(simulated=True).exists():
        return
    for hostname, role in ROLES.items():
        everyone = past.accelerators[hostname]
        changed = [row for row in everyone if _was_changed(past, row)]
        others = [row for row in everyone if row not in changed]
        if others:
            _assign(past, others, role, past.start, past.end)
        if changed:
            _write_change(past, everyone, changed, role)


def _was_changed(past: Past, accelerator: Accelerator) -> bool:
    """True if the change that went back had the accelerator in its first wave."""
    is_member = accelerator.node.hostname == SLOW[0] and accelerator.slot in ROLLED_BACK_SLOTS
    return is_member and past.changed_at > past.start


def _write_change(
    past: Past, everyone: Sequence[Accelerator], changed: Sequence[Accelerator], role: str
) -> None:
    back = past.changed_at + ROLLED_BACK_FOR
    plan = past_plan.write(
        pool=past.pool,
        accelerators=everyone,
        changed=ROLLED_BACK_SLOTS,
        at=past.changed_at,
        lasted=ROLLED_BACK_FOR,
    )
    _assign(past, changed, role, past.start, past.changed_at)
    _assign(past, changed, "decode", past.changed_at, back, plan=plan)
    _assign(past, changed, role, back, past.end, plan=plan)


def _assign(
    past: Past,
    accelerators: Sequence[Accelerator],
    role: str,
    start: datetime,
    end: datetime,
    *,
    plan: ChangePlan | None = None,
) -> None:
    record_past_assignment(
        PastAssignment(
            pool=past.pool,
            node=accelerators[0].node,
            accelerators=accelerators,
            role=role,
            valid_from=start,
            valid_to=end,
            reason="History of the demo site (simulated).",
            simulated=True,
            plan=plan,
        )
    )
