"""Pages of a list by number, so that every filter and page has an address."""

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

ROWS = 50
MOST_ROWS = 200


def page_of(request: HttpRequest, rows: QuerySet[Any], *, rows_per_page: int = ROWS) -> Page[Any]:
    """The page that `?page=` names, of `?rows=` rows (200 at most); the nearest if it is wrong."""
    wanted = request.GET.get("rows", "")
    size = min(int(wanted), MOST_ROWS) if wanted.isdigit() and int(wanted) > 0 else rows_per_page
    return Paginator(rows, size).get_page(request.GET.get("page"))
