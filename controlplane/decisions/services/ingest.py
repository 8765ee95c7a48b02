"""Read the routers' rings: records become rows, outcomes complete them, shadow sums become hours.

A line is stored once, whatever is delivered twice: its key is the router, its start and its number.
"""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils import timezone

from controlplane.decisions import selectors
from controlplane.decisions.models import Decision, RouterReading, ShadowHour
from controlplane.decisions.sources import router as source

logger = logging.getLogger(__name__)

MAX_PAGES = 10
"""Per router and run; what is left comes with the next run."""
_TEXTS = {
    "pool": 200, "policy": 64, "decided_by": 64, "destination": 200, "prefill": 200,
    "runner_up": 200, "document_hash": 64,
}  # fmt: skip


def pull_decisions() -> dict[str, int]:
    """Read every router in use; returns the stored records by router.

    A router that does not answer is noted and disturbs no other.
    """
    return {port.name: _pull(port) for port in selectors.router_ports()}


def _pull(port: source.RouterPort) -> int:
    stored = 0
    try:
        for _ in range(MAX_PAGES):
            reading = RouterReading.objects.filter(router=port.name).first()
            after = reading.last_number if reading else 0
            page = source.fetch(port, after=after)
            if reading and page.started_at != reading.started_at and after:
                # It counts from the start again.
                page = source.fetch(port, after=0)
            stored += take_in(page, router=port.name)
            if len(page.decisions) < source.LINES_PER_PAGE:
                break
    except (source.RouterUnreachableError, DatabaseError) as error:
        logger.warning("Decisions of router %s: %s", port.name, error)
        RouterReading.objects.update_or_create(
            router=port.name, defaults={"last_error": str(error)[:300]}
        )
    return stored


@transaction.atomic
def take_in(page: source.Page, *, router: str) -> int:
    """Store a page; storing it again changes nothing. Returns the number of records in it."""
    RouterReading.objects.get_or_create(router=router)
    reading = RouterReading.objects.select_for_update(no_key=True).get(router=router)
    if reading.started_at != page.started_at:
        reading.started_at, reading.last_number, reading.shadow = page.started_at, 0, {}
        reading.missed = 0
    lines = [line for line in page.decisions if _number(line) > reading.last_number]
    storable = [line for line in lines if _is_storable(line)]
    records = [line for line in storable if "outcome_of" not in line]
    rows = [_row(record, router=router, started_at=page.started_at) for record in records]
    Decision.objects.bulk_create([row for row in rows if row], ignore_conflicts=True)
    for line in storable:
        if "outcome_of" in line:
            _complete(line, router=router, started_at=page.started_at)
    if lines:
        first = min(map(_number, lines))
        reading.missed += max(0, first - reading.last_number - 1)
        reading.last_number = max(map(_number, lines))
    _add_shadow(reading.shadow, page)
    reading.shadow, reading.left_out = page.shadow, page.left_out
    reading.sample_rates = page.sample_rates
    reading.read_at, reading.last_error = timezone.now(), ""
    reading.save()
    return len(records)


def _number(line: Mapping[str, Any]) -> int:
    number = line.get("number")
    return number if isinstance(number, int) and 0 < number < 2**62 else 0


def _is_storable(line: Mapping[str, Any]) -> bool:
    """No column holds U+0000, and no router of ours writes it."""
    return rb"\u0000" not in msgspec.json.encode(line)


def _row(record: dict[str, Any], *, router: str, started_at: float) -> Decision | None:
    """The row of a record; None for one that names nothing to find it by."""
    if not isinstance(record.get("id"), str):
        return None
    request = _part(record, "request")
    predicted = _part(record, "predicted")
    refusal = _part(record, "refusal")
    texts = {name: _text(record.get(name), size) for name, size in _TEXTS.items()}
    return Decision(
        **texts,
        router=router,
        router_started_at=started_at,
        number=_number(record),
        decision_id=_text(record["id"], 250),
        at=_moment(record.get("recorded_at")),
        document_version=_count(record.get("document_version")) or 0,
        tenant=_text(request.get("tenant"), 200),
        project=_text(request.get("project"), 200),
        key=_text(request.get("key_id"), 200),
        model=_text(request.get("model"), 200),
        attempt=min(_count(record.get("attempt")) or 1, 32_000),
        margin_seconds=_seconds(record.get("margin_seconds")),
        prompt_tokens=_count(request.get("prompt_tokens")),
        hit_tokens=None if refusal else _count(predicted.get("hit_tokens")),
        uncached_tokens=None if refusal else _count(predicted.get("uncached_tokens")),
        predicted_ttft_seconds=_seconds(predicted.get("ttft_seconds")),
        outcome=Decision.Outcome.REFUSED if refusal else Decision.Outcome.OPEN,
        status=_status(refusal.get("status")),
        refusal_code=_text(refusal.get("code"), 64) or ("unknown" if refusal else ""),
        prefix=_text(_part(request, "prefix").get("first"), 16),
        held=_held(record),
        record={name: value for name, value in record.items() if name != "number"},
    )


def _held(record: Mapping[str, Any]) -> dict[str, int]:
    rows = record.get("candidates")
    found = {
        _text(row.get("endpoint"), 200): _count(row.get("hit_tokens"))
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
    }
    return {name: tokens for name, tokens in found.items() if name and tokens}


def _complete(line: Mapping[str, Any], *, router: str, started_at: float) -> None:
    told = _part(line, "outcome")
    word = told.get("outcome")
    if word not in Decision.Outcome.values:
        return
    rows = Decision.objects.filter(
        router=router, router_started_at=started_at, decision_id=str(line["outcome_of"])[:250]
    )
    for row in rows.exclude(outcome=Decision.Outcome.REFUSED):
        row.outcome, row.status = word, _status(told.get("status"))
        row.real_ttft_seconds = _seconds(told.get("ttft_seconds"))
        row.cached_tokens = _count(told.get("cached_tokens"))
        row.record["outcome"] = told
        row.save(
            update_fields=[
                "outcome", "status", "real_ttft_seconds", "cached_tokens", "record", "updated_at",
            ]
        )  # fmt: skip


def _add_shadow(before: Mapping[str, Mapping[str, Mapping[str, float]]], page: source.Page) -> None:
    """Add what was counted since the last reading to the hour; both are saved together."""
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for pool, policies in page.shadow.items():
        live = page.policies.get(pool, "")[:64]
        for policy, sums in policies.items():
            old = before.get(pool, {}).get(policy, {})
            if sums.get("asked", 0) < old.get("asked", 0):
                # A document dropped the policy and took it up again, or changed the live one.
                old = {}
            added = {name: sums.get(name, 0) - old.get(name, 0) for name in ShadowHour.SUMS}
            if added["asked"] <= 0:
                continue
            key: dict[str, Any] = {
                "pool": pool[:200],
                "policy": policy[:64],
                "live": live,
                "hour": hour,
            }
            ShadowHour.objects.get_or_create(**key)
            ShadowHour.objects.filter(**key).update(
                **{name: F(name) + value for name, value in added.items()},
                updated_at=timezone.now(),
            )


def _part(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = record.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object, size: int) -> str:
    return value[:size] if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    number = _seconds(value)
    return int(number) if number is not None and 0 <= number < 2**62 else None


def _status(value: object) -> int | None:
    found = _count(value)
    return found if found is not None and found < 1000 else None


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _moment(value: object) -> datetime:
    """When it was recorded; a router whose clock is ahead cannot know what has not happened."""
    now = timezone.now()
    if not isinstance(value, int | float) or not 0 < value < now.timestamp():
        return now
    return datetime.fromtimestamp(value, UTC)
