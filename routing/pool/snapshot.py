"""The state of a pool's router as JSON-able values; unknown numbers are null, never 0."""

import math
from typing import Any

from routing.core.table import Instance
from routing.pool.knowledge import Knowledge

MAX_PAIRS = 2000
"""Pairs listed one by one; `pair_count` says how many there are."""


def snapshot_of(known: Knowledge, *, now: float) -> dict[str, Any]:
    """Everything an operator may want to see of one pool."""
    table, pairs = known.table, known.pairs
    return {
        "pool": known.document.pool,
        "document_version": known.document.version,
        "policy": known.document.policy.name,
        "leases_open": len(known.leases),
        "bytes_per_token": known.bytes_per_token.all(),
        "prediction_error": {name: round(value, 4) for name, value in known.speeds.error.items()},
        "prediction_error_by_class": known.predictions.describe_classes(),
        "endpoints": [_endpoint(known, instance, now=now) for instance in table.instances],
        "pair_count": len(pairs.prefill_rows) * len(pairs.decode_rows),
        "pairs": _pairs(known, now=now),
        "findings": known.findings.describe(now=now),
    }


def _endpoint(known: Knowledge, instance: Instance, *, now: float) -> dict[str, Any]:
    table, spec, row = known.table, instance.spec, instance.row

    def ours(column: str) -> int:
        return int(getattr(table, column)[row] - known.peers.theirs(column, row))

    return {
        "id": spec.id,
        "instance": spec.instance,
        "state": spec.state,
        "role": spec.role,
        "vendor": spec.vendor,
        "speed_class": spec.speed_class,
        "running": _count(table.running[row]),
        "waiting": _count(table.waiting[row]),
        "kv_usage": _number(table.kv_usage[row]),
        "kv_capacity_tokens": _count(table.capacity_tokens[row]),
        "others": _number(table.others[row]),
        "signal_age_seconds": _number(now - table.observed_at[row]),
        "inflight_requests": ours("requests"),
        "inflight_prefill_tokens": ours("prefill_tokens"),
        "inflight_sequences": ours("sequences"),
        "peers_requests": int(known.peers.theirs("requests", row)),
        "indexed_blocks": known.index.entries(instance.slot),
        "trust": _number(table.trust[row]),
        "events": known.caches.events.describe(instance, now=now),
        "hits": known.caches.rates(instance),
        "breaker": known.breakers.of(instance).describe(now=now),
        "speeds": known.speeds.describe(table, instance),
        "predictions": known.predictions.describe(instance),
        "homes": known.homes.describe(instance),
    }


def _pairs(known: Knowledge, *, now: float) -> list[dict[str, Any]]:
    pairs, instances = known.pairs, known.table.instances
    found: list[dict[str, Any]] = []
    for line, prefill in enumerate(pairs.prefill_rows):
        for column, decode in enumerate(pairs.decode_rows):
            if len(found) >= MAX_PAIRS:
                return found
            verdict = pairs.verdicts[line][column]
            ends = (instances[prefill], instances[decode])
            per_token = float(pairs.seconds_per_token[line, column])
            found.append(
                {
                    "prefill": ends[0].spec.id,
                    "decode": ends[1].spec.id,
                    "verdict": verdict.verdict,
                    "reason": verdict.reason,
                    "staging": verdict.staging,
                    "missing": list(verdict.missing),
                    "seconds_per_1000_tokens": verdict.seconds_per_1000_tokens,
                    "learned_seconds_per_1000_tokens": _number(1000 * per_token),
                    "usable": math.isfinite(per_token),
                    "breaker": known.pair_breakers.of(ends).describe(now=now),
                }
            )
    return found


def _number(value: float) -> float | None:
    return round(float(value), 6) if math.isfinite(value) else None


def _count(value: float) -> int | None:
    return int(value) if math.isfinite(value) else None
