"""Exports of the ledger; the page is in `console`."""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse

from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.finance.models import LedgerHour

_COLUMNS = ["hour", "node", "seconds", "currency", *LedgerHour.COMPONENTS, "total", "source"]


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
    except ValueError:
        return HttpResponse("month=YYYY-MM is needed.", status=400, content_type="text/plain")
    end = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    rows = LedgerHour.objects.filter(hour__gte=start, hour__lt=end).order_by("hour", "pk")
    answer = StreamingHttpResponse(_lines(rows), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="ledger-{start:%Y-%m}.csv"'
    return answer


def _lines(rows: QuerySet[LedgerHour]) -> Iterator[str]:
    writer = csv.writer(_Line())
    yield writer.writerow(_COLUMNS)
    columns = ["hour", "node__hostname", *_COLUMNS[2:]]
    for row in rows.values_list(*columns).iterator(chunk_size=2000):
        yield writer.writerow([row[0].isoformat(), *row[1:]])
