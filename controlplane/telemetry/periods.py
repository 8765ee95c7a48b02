"""Half-open periods as query parameters: `from` is in, `to` is out."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from controlplane.telemetry.errors import PeriodError

LONGEST = timedelta(days=400)
PARAMETERS = ("from", "to")
SCHEMA = [
    OpenApiParameter("from", OpenApiTypes.DATETIME, description="Start; it belongs to the period."),
    OpenApiParameter("to", OpenApiTypes.DATETIME, description="End; left out: now."),
]


def period_of(
    query: Mapping[str, str], *, default: timedelta, now: datetime | None = None
) -> tuple[datetime, datetime]:
    """Start and end from `from` and `to`; without them the last `default` until now.

    Raises PeriodError for a time that cannot be read or has no zone, for an end that is not after
    the start, and for more than LONGEST.
    """
    now = now or timezone.now()
    end = _moment(query, "to") or now
    try:
        start = _moment(query, "from") or end - default
    except OverflowError as error:
        raise _error(query) from error
    if not timedelta(0) < end - start <= LONGEST:
        raise _error(query)
    return start, end


def _moment(query: Mapping[str, str], name: str) -> datetime | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        # A plus that was not escaped arrives as a space.
        moment = parse_datetime(text.replace(" ", "+"))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise _error(query)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise _error(query) from error


def _error(query: Mapping[str, str]) -> PeriodError:
    return PeriodError(
        start=query.get("from", "")[:40], end=query.get("to", "")[:40], days=LONGEST.days
    )
