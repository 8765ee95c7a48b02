"""JSON out."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from django.utils.translation import gettext_lazy

from controlplane.api.renderers import JSONRenderer, dump
from controlplane.tenancy.models import Role

IDENTIFIER = UUID("018f0000-0000-7000-8000-000000000001")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1234.560000"), '"1234.560000"'),
        (Decimal("1E+3"), '"1000"'),
        (datetime(2026, 11, 30, 1, 2, 3, tzinfo=UTC), '"2026-11-30T01:02:03Z"'),
        (datetime(2026, 11, 30, 10, tzinfo=timezone(timedelta(hours=9))), '"2026-11-30T01:00:00Z"'),
        (date(2026, 11, 30), '"2026-11-30"'),
        (gettext_lazy("pending"), '"pending"'),
        (Role.AUDITOR, '"auditor"'),
        (IDENTIFIER, f'"{IDENTIFIER}"'),
        (("a", None), '["a",null]'),
        ({1: "한"}, '{"1":"한"}'),
    ],
)
def test_values_have_one_form(value: object, text: str) -> None:
    assert dump(value).decode() == text


def test_a_naive_time_is_an_error() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        dump(datetime(2026, 11, 30))  # noqa: DTZ001 - the point of the test


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(TypeError, match="not JSON serializable: object"):
        dump(object())


def test_nothing_is_no_body() -> None:
    assert JSONRenderer().render(None) == b""
