"""Exports of the ledger; the page is in `console`."""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.utils.translation import gettext as _

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.finance import selectors
from controlplane.finance.depreciation import month_later
from controlplane.finance.models import LedgerHour

_COLUMNS = ["hour", "node", "seconds", "currency", *LedgerHour.COMPONENTS, "total", "source"]


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Line:
    """Gives each CSV line back instead of keeping it."""

    def write(self, text: str) -> str:
        return text


@login_required
def ledger_csv(request: ConsoleRequest) -> HttpResponse | StreamingHttpResponse:
    """The month's ledger hours, exact amounts, one line per node and hour."""
    permissions.require(request.user, "finance.view_ledger")
    try:
        start = datetime.strptime(request.GET.get("month", ""), "%Y-%m").replace(tzinfo=UTC)
        end = month_later(start, 1)
    except (ValueError, OverflowError):
        sentence = _("The parameter month is needed as YYYY-MM, for example month=2026-11.")
        return HttpResponse(sentence, status=400, content_type="text/plain; charset=utf-8")
    rows = (
        selectors.ledger_for_viewer(request.user)
        .filter(hour__gte=start, hour__lt=end)
        .order_by("hour", "pk")
    )
    audit.record(
        actor=request.user, action="ledger.export", subject=request.user,
        after={"month": f"{start:%Y-%m}"},
    )  # fmt: skip
    answer = StreamingHttpResponse(_lines(rows), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="ledger-{start:%Y-%m}.csv"'
    return answer


def _lines(rows: QuerySet[LedgerHour]) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow(_COLUMNS)
    columns = ["hour", "node__hostname", *_COLUMNS[2:]]
    for hour, node, *values in rows.values_list(*columns).iterator(chunk_size=2000):
        yield writer.writerow([hour.isoformat(), _harmless(node), *values])


def _harmless(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
