"""Money stands in the API as text with a currency, or not at all."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rest_framework import serializers

from controlplane.finance.serializers import MoneyField, money


@dataclass
class Row:
    total: Decimal | None
    currency: str = "KRW"


class RowOutput(serializers.Serializer[Any]):
    total = MoneyField()


def test_no_exponent_and_no_float() -> None:
    assert money(Decimal("1E+3"), "USD") == {"amount": "1000", "currency": "USD"}
    assert RowOutput(Row(Decimal("0.0000000001"))).data == {
        "total": {"amount": "0.0000000001", "currency": "KRW"}
    }


def test_an_unknown_amount_is_null() -> None:
    assert RowOutput(Row(None)).data == {"total": None}
