"""Rows of planning: scenarios that take a second to run, and loads that somebody measured."""

import hashlib
import itertools
from datetime import datetime, timedelta
from typing import Any

import msgspec

from controlplane.metering.models import UsageEventRow
from controlplane.planning import services
from controlplane.planning.models import Advice, Scenario, ScenarioRun
from controlplane.serving.models import Pool
from controlplane.tenancy.models import User
from inventory.models import Node
from routing.planner.problem import Roles
from tests.controlplane.serving.factories import make_assigned, make_fleet_node, make_pool
from tests.factories import make_olga
from tests.routing.planner.fleets import demand, group, problem

_numbers = itertools.count(1)
TRAFFIC = {"rate_qps": 2.0, "prompt_tokens": 500, "output_tokens": 40}


def a_problem(**overrides: Any) -> dict[str, Any]:
    """One pool of two accelerators that stay at both phases: one option to simulate."""
    now = {"amd-mi325x": Roles(both=2)}
    values = {"now": now, "may_split": False, "lengths": {"prompt_tokens": 500}} | overrides
    asked = problem(group(accelerators_per_node=2), demands=(demand(2.0, **values),))
    plain: dict[str, Any] = msgspec.to_builtins(asked)
    return plain


def make_scenario(actor: User | None = None, **overrides: Any) -> Scenario:
    values: dict[str, Any] = {"name": f"scenario {next(_numbers)}", "problem": a_problem()}
    return services.create_scenario(actor=actor or make_olga(), **values | overrides)


def make_run(scenario: Scenario | None = None, actor: User | None = None) -> ScenarioRun:
    actor = actor or make_olga()
    scenario = scenario or make_scenario(actor)
    return services.run_scenario(scenario_id=scenario.pk, actor=actor)


def make_finished_run(scenario: Scenario | None = None) -> ScenarioRun:
    run = make_run(scenario)
    services.work_on_run(operation_id=run.operation_id)
    run.refresh_from_db()
    return run


def make_serving_fleet(*, prefill: int = 0, decode: int = 0, both: int = 2) -> tuple[Pool, Node]:
    """A pool with whole nodes in its roles; gives the last node made."""
    pool = make_pool()
    node = None
    for role, count in (("prefill", prefill), ("decode", decode), ("both", both)):
        if count:
            # Groups are numbered in the order of host names: the same for every fleet made here.
            node = make_fleet_node(accelerators=count, hostname=f"{pool.slug}-{role}")
            make_assigned(pool, node, role=role)
    assert node is not None
    return pool, node


def make_events(
    pool: Pool, count: int, *, until: datetime, seconds: float = 600.0, **overrides: Any
) -> None:
    """Answered requests, evenly over the seconds before a moment."""
    first = next(_numbers) * 1_000_000
    rows = []
    for number in range(count):
        at = until - timedelta(seconds=seconds * (count - number) / count)
        values: dict[str, Any] = {
            "router": "r", "sequence": first + number, "request_id": str(first + number),
            "sha256": hashlib.sha256(str(first + number).encode()).digest(),
            "hour": at.replace(minute=0, second=0, microsecond=0), "pool": pool.slug,
            "document_version": 1, "policy": "consort", "tenant": "t", "project": "p", "key": "k",
            "model": pool.model.slug, "received_at": at, "ended_at": at, "outcome": "ok",
            "status": 200, "attempt": 1, "delivered": True, "stream": True,
            "counted_by": "engine", "input_uncached": 500, "cache_read": 0, "cache_write": 0,
            "output": 40,
        }  # fmt: skip
        rows.append(UsageEventRow(**values | overrides))
    UsageEventRow.objects.bulk_create(rows)


def make_advice(pool: Pool | None, members: dict[str, list[str]], **overrides: Any) -> Advice:
    """Advice to give two accelerators of each group to prefill, unless told otherwise."""
    wanted = overrides.pop("wanted", {name: {"prefill": len(ids)} for name, ids in members.items()})
    width = overrides.pop("width", 1)
    shares = [
        {"group": name, "width": width, "prefill": 0, "decode": 0, "both": 0} | counts
        for name, counts in wanted.items()
    ]
    option = {
        "kind": "split", "placement": shares, "moves": 2, "accelerators": 2,
        "bound": {
            "capacity_rps": 9.0, "limited_by": "decode", "ttft_seconds": None,
            "tpot_seconds": None, "hit_share": 0.0,
        },
        "outcome": None, "cost_per_hour": None, "cost_per_million_output": None,
        "watts_at_most": None, "reasons": [],
    }  # fmt: skip
    name = pool.slug if pool is not None else "elsewhere"
    values: dict[str, Any] = {
        "pool": pool, "name": name, "verdict": "split", "gain": 0.2, "members": members,
        "error_band": {"throughput": 0.15, "tpot": 0.25, "source": "test"},
        "content": {
            "pool": name, "model": "granite-4.1-8b", "verdict": "split", "chosen": option,
            "alternatives": [], "reasons": [], "refused": [], "offered_rps": 2.0,
            "ttft_target_seconds": 3.0, "tpot_target_seconds": 0.08, "gain": 0.2,
        },
    }  # fmt: skip
    return Advice.objects.create(**values | overrides)
