"""A published run as a scenario: its fleet, its load, the policy that stands for its router."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import msgspec

from routing.core.document import Limits, Policy, PoolDocument
from routing.simulator.fleet import Member, build_fleet
from routing.simulator.profiles import Profile
from routing.simulator.published.load import PublishedLoad
from routing.simulator.published.tables import Table, members, traffic
from routing.simulator.requests import Stage
from routing.simulator.scenario import Scenario, Surroundings

TIMEOUT_SECONDS = 300.0
"""Of the load generator."""
PATIENT = Limits(
    concurrent_requests=1_000_000,
    first_token_timeout_seconds=TIMEOUT_SECONDS,
    stall_timeout_seconds=TIMEOUT_SECONDS,
    attempts=1,
)
"""Neither a Service nor the published router gives up a stream that stalls, or turns one away."""


def scenario_of(
    table: Table,
    *,
    surroundings: Surroundings | None = None,
    policy: Policy | None = None,
    profiles: Mapping[str, Profile] | None = None,
    rates: Collection[float] | None = None,
    replicas: int | None = None,
) -> Scenario:
    """`profiles` replace the packaged ones, by accelerator class.

    `policy` stands in for the table's own. `rates` leaves out the other stages, but for the
    warm-up. `replicas` of a class stand for all of it and get their share of the requests, which
    is exact behind a Service, but for how long the slowest replica drains.
    """
    all_members = members(table.fleet)
    used_members = [_only(one, replicas) for one in all_members]
    keep = _count(used_members) / _count(all_members)
    fleet = build_fleet(used_members, model=table.model, policy=policy)
    used = dict(fleet.profiles)
    if profiles is not None:
        used = {name: profiles.get(one.accelerator, one) for name, one in used.items()}
    name = policy.name if policy is not None else table.policy
    around = surroundings or Surroundings()
    sent = traffic(table.workload)
    load = PublishedLoad(table.workload, sent, kept_stages(table, rates), keep=keep)
    return Scenario(
        document=patient(fleet.document),
        profiles=used,
        speeds=fleet.speeds,
        workload=load,
        policy=name,
        surroundings=replace(
            around,
            timeout_seconds=TIMEOUT_SECONDS,
            has_events=name == "llm-d-precise",
        ),
    )


def patient(document: PoolDocument) -> PoolDocument:
    """The pool without what only our router does for its clients' sake."""
    pairs = msgspec.structs.replace(
        document.disaggregation, transfer_timeout_seconds=TIMEOUT_SECONDS
    )
    return msgspec.structs.replace(document, limits=PATIENT, disaggregation=pairs)


def _only(member: Member, replicas: int | None) -> Member:
    return member if replicas is None else replace(member, count=min(replicas, member.count))


def _count(some: Iterable[Member]) -> int:
    return sum(one.count for one in some)


def kept_stages(table: Table, rates: Collection[float] | None) -> tuple[Stage, ...]:
    """The ladder with the warm-up and the stages of some rates; all without `rates`."""
    return tuple(
        stage
        for stage in table.stages
        if stage.is_warm_up or rates is None or stage.rate_qps in rates
    )
