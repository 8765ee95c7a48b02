"""Base class of what the API takes in."""

import difflib
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses members it does not know, so that a misspelt one is never silently dropped."""

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

    change_reason = serializers.CharField(max_length=200, source="reason")


class OptionalReasonInput(StrictSerializer):
    """Input of actions that take a reason if there is one."""

    change_reason = serializers.CharField(
        max_length=200, source="reason", required=False, default="", allow_blank=True
    )
