"""What beat sends and why so often. Every task here may run twice, late or not at all."""

from typing import Any


def every(seconds: float, task: str) -> dict[str, Any]:
    """Send a task every `seconds`; a message that waited as long is dropped, as another is due."""
    return {"task": task, "schedule": seconds, "options": {"expires": max(seconds, 5)}}


SCHEDULE: dict[str, dict[str, Any]] = {
    # Shows in the console that beat, broker and a worker are alive; stale after a minute.
    "tick": every(10, "controlplane.operations.tasks.tick"),
    # Well inside the 60 s after which an unchained entry is an alert.
    "extend-audit-chain": every(5, "controlplane.audit.tasks.extend_chain"),
    # A lost message costs at most this and the 30 s after which it counts as lost.
    "sweep-operations": every(15, "controlplane.operations.tasks.sweep"),
    # Records expire after a day, so an hour more does no harm.
    "forget-idempotency-keys": every(3600, "controlplane.operations.tasks.forget_idempotency_keys"),
    # Events and observations stay 30 days; an hour more does no harm.
    "forget-events": every(3600, "controlplane.operations.tasks.forget_events"),
    "forget-observations": every(3600, "inventory.tasks.forget_observations"),
    # Coverage of roll-ups counts against this distance (`telemetry.services.scrape`).
    "scrape-engines": every(5, "controlplane.telemetry.tasks.scrape_engines"),
    # The dashboard's figures are at most this much older than the last scrape.
    "roll-up": every(5, "controlplane.telemetry.tasks.roll_up"),
    # Verdicts need hours of data, so minutes are soon enough.
    "detect-alerts": every(120, "controlplane.telemetry.tasks.detect_alerts"),
    # Samples stay 48 h; an hour more does no harm.
    "delete-old-samples": every(3600, "controlplane.telemetry.tasks.delete_old_samples"),
    # Usage is on the pages about this long after the answer; routers close a segment each second.
    "pull-usage": every(5, "controlplane.metering.tasks.pull_usage"),
    # Decisions are on the page about this long after they fell; a router keeps 2,000 for us.
    "pull-decisions": every(5, "controlplane.decisions.tasks.pull_decisions"),
    # Decisions stay 7 days and 200,000 rows; an hour more does no harm.
    "delete-old-decisions": every(900, "controlplane.decisions.tasks.delete_old_decisions"),
    # Follows roll-up, whose sums it compares.
    "reconcile-recent": every(5, "controlplane.metering.tasks.reconcile_recent"),
    # Events stay 35 days; an hour more does no harm.
    "delete-old-events": every(3600, "controlplane.metering.tasks.delete_old_events"),
    # Costs on the pages follow the clock about this closely; two hours are computed each time.
    "recompute-ledger": every(15, "controlplane.finance.tasks.recompute_recent"),
    # Health of a node that nobody observed for ten minutes is unknown at most a minute later.
    "mark-stale-nodes": every(60, "inventory.tasks.mark_stale"),
    # A node that is lost or changed in a cluster is known about this late; nodes are listed anew
    # every ten minutes (`inventory.services.discovering`).
    "discover-clusters": every(20, "inventory.tasks.discover_clusters"),
    # A gain must last for half an hour, and a look takes seconds of a core per loaded pool.
    "advise-standing": every(900, "controlplane.planning.tasks.advise_standing"),
    # Findings stay 30 days; a day more does no harm.
    "forget-standing": every(86_400, "controlplane.planning.tasks.forget_standing"),
    # A race whose worker was killed says so about this late; its claim lapses after 15 s.
    "end-stranded-races": every(10, "controlplane.planning.tasks.end_stranded_races"),
    # A lost nudge costs at most this; the demo's engines come back within it.
    "reconcile-pools": every(2, "controlplane.serving.tasks.reconcile_pools"),
    # A router counts as in reach for 10 s after it was heard.
    "poll-routers": every(3, "controlplane.serving.tasks.poll_routers"),
}
