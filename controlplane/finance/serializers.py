"""How money stands in the API: a decimal as text beside its currency, or null."""

from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

_MONEY = {
    "type": ["object", "null"],
    "required": ["amount", "currency"],
    "properties": {
        "amount": {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"},
        "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
    },
}


def money(amount: Decimal | None, currency: str) -> dict[str, str] | None:
    """The amount with its currency; null where nobody knows it."""
    return None if amount is None else {"amount": format(amount, "f"), "currency": currency}


@extend_schema_field(_MONEY)
class MoneyField(serializers.Field[Any, Any, Any, Any]):
    """An amount of a row that has a `currency`; the field is called like the attribute."""

    def __init__(self, **options: Any) -> None:
        super().__init__(source="*", read_only=True, **options)

    def to_representation(self, row: Any) -> dict[str, str] | None:
        """Text, never a float."""
        return money(getattr(row, str(self.field_name)), row.currency)
