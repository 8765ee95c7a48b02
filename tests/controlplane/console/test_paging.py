"""Pages of lists."""

import pytest
from django.contrib.sessions.models import Session
from django.test import RequestFactory

from controlplane.console.paging import MOST_ROWS, ROWS, page_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("query", "size"),
    [("", ROWS), ("rows=7", 7), ("rows=9999", MOST_ROWS), ("rows=-1", ROWS), ("rows=x", ROWS)],
)
def test_the_number_of_rows_has_a_bound(query: str, size: int) -> None:
    page = page_of(RequestFactory().get(f"/?{query}"), Session.objects.order_by("pk"))

    assert page.paginator.per_page == size


def test_a_page_that_does_not_exist_is_the_nearest() -> None:
    page = page_of(RequestFactory().get("/?page=77"), Session.objects.order_by("pk"))

    assert page.number == 1
