"""Base classes of what the API takes in."""

import difflib
from collections.abc import Callable
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.common import labels
from controlplane.common.lookup import rows_named

_NO_REASON = gettext_lazy("This change needs a reason.")


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses members it does not know, so that a misspelt one is never silently dropped."""

    def get_fields(self) -> dict[str, Any]:
        """The declared fields; those with choices list them when they refuse a value."""
        fields = super().get_fields()
        for field in fields.values():
            _name_choices(field)
        return fields

    def to_internal_value(self, data: Any) -> Any:
        """As Django REST framework's, after the check for unknown members."""
        if isinstance(data, dict):
            unknown = {str(name): [self._sentence(str(name))] for name in data.keys() - self.fields}
            if unknown:
                raise serializers.ValidationError(unknown, code="unknown")
        return super().to_internal_value(data)

    def _sentence(self, name: str) -> str:
        writable = [key for key, field in self.fields.items() if not field.read_only]
        close = difflib.get_close_matches(name, writable, n=1)
        if close:
            return _("There is no member '{name}'. Did you mean '{close}'?").format(
                name=name, close=close[0]
            )
        return _("There is no member '{name}'. Allowed: {allowed}.").format(
            name=name, allowed=", ".join(writable)
        )


class ReasonInput(StrictSerializer):
    """Input of actions that need nothing but a reason."""

    change_reason = serializers.CharField(
        max_length=200, source="reason",
        error_messages={"required": _NO_REASON, "blank": _NO_REASON, "null": _NO_REASON},
    )  # fmt: skip


class OptionalReasonInput(StrictSerializer):
    """Input of actions that take a reason if there is one."""

    change_reason = serializers.CharField(
        max_length=200, source="reason", required=False, default="", allow_blank=True
    )


@extend_schema_field(OpenApiTypes.STR)
class VisibleRow(serializers.Field[Any, Any, Any, Any]):
    """A row by id or by name, among those that the caller may see; gives its id.

    `selector` gives the rows of a user, `by` is the column of the name, and rows that fit `first`
    come before others of the same name.
    """

    default_error_messages = {
        "text": gettext_lazy("Give the id or the name as text."),
        "unknown": gettext_lazy("There is no {kind} '{name}' here, or you may not see it."),
        "several": gettext_lazy(
            "'{name}' is the name of several rows. Give the id of one of them."
        ),
    }

    def __init__(
        self,
        selector: Callable[[Any], "QuerySet[Any]"],
        *,
        by: str = "slug",
        first: Q | None = None,
        **options: Any,
    ) -> None:
        self.selector, self.by, self.first = selector, by, first
        super().__init__(write_only=True, **options)

    def to_internal_value(self, data: Any) -> Any:
        """Id of the row."""
        if not isinstance(data, str):
            self.fail("text")
        rows = self.selector(self.context["request"].user)
        found = rows_named(rows, data, by=self.by, first=self.first)
        if not found:
            self.fail("unknown", kind=labels.kind_label(rows.model), name=data[:200])
        if len(found) > 1:
            self.fail("several", name=data[:200])
        return found[0].pk


class MomentField(serializers.DateTimeField):
    """A time with a zone; one without is refused, because nobody knows which was meant."""

    default_error_messages = {
        "naive": gettext_lazy("Give the time with a time zone, such as 2026-11-30T00:00:00Z.")
    }

    def enforce_timezone(self, value: Any) -> Any:
        """The time as it is."""
        if timezone.is_naive(value):
            self.fail("naive")
        return super().enforce_timezone(value)


def _name_choices(field: Any) -> None:
    if isinstance(field, serializers.ListField):
        field = field.child
    if isinstance(field, serializers.ChoiceField):
        sentence = _("'{input}' is not possible here. Allowed: {allowed}.")
        allowed = ", ".join(str(choice) for choice in field.choices)
        field.error_messages["invalid_choice"] = sentence.replace("{allowed}", allowed)
