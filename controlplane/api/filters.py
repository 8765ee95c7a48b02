"""Filters of lists: what is not known is refused, never ignored."""

import difflib
from collections.abc import Collection, Iterable
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django_filters import BooleanFilter, IsoDateTimeFilter, utils
from django_filters.fields import IsoDateTimeField
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.request import Request

from controlplane.api.errors import UnknownParameterError
from controlplane.common.errors import InvalidParameterError

LONGEST_SHOWN = 200


class StrictFilterBackend(DjangoFilterBackend):
    """Filters by the view's `filterset_class`; a value that does not fit is a 400."""

    def filter_queryset(
        self, request: Request, queryset: "QuerySet[Any]", view: Any
    ) -> "QuerySet[Any]":
        """Rows that pass every filter."""
        filterset = self.get_filterset(request, queryset, view)
        if filterset is None:
            return queryset
        _refuse_unclear(filterset)
        if not filterset.is_valid():
            raise _invalid(filterset, utils.translate_validation(filterset.errors).detail)
        rows: QuerySet[Any] = filterset.qs
        return rows


def filter_names(view: Any) -> list[str]:
    """Names of the view's filters."""
    filterset = getattr(view, "filterset_class", None)
    return list(filterset.base_filters) if filterset is not None else []


def refuse_unknown(given: Iterable[str], *, allowed: Collection[str]) -> None:
    """Raise UnknownParameterError for the first name that is not allowed."""
    for name in given:
        if name not in allowed:
            close = difflib.get_close_matches(name, allowed, n=1)
            suggestion = " " + _("Did you mean '{close}'?").format(close=close[0]) if close else ""
            raise UnknownParameterError(
                parameter=name, suggestion=suggestion, allowed=", ".join(sorted(allowed))
            )


def _refuse_unclear(filterset: Any) -> None:
    """Refuse what a form would let pass as "no filter", or would have to guess.

    A word that is no truth value would filter nothing; a time without a zone means 26 hours.
    """
    for name, declared in filterset.filters.items():
        text = filterset.data.get(name, "")
        is_unclear = (isinstance(declared, BooleanFilter) and text not in {"true", "false"}) or (
            isinstance(declared, IsoDateTimeFilter) and not _has_zone(text)
        )
        if text and is_unclear:
            raise InvalidParameterError(
                parameter=name, value=text[:LONGEST_SHOWN], allowed=_allowed(declared.field)
            )


def _has_zone(text: str) -> bool:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return False
    return moment is not None and moment.tzinfo is not None


def _invalid(filterset: Any, detail: Any) -> InvalidParameterError:
    name, messages = next(iter(detail.items()))
    allowed = _allowed(filterset.form.fields.get(name))
    return InvalidParameterError(
        parameter=name,
        value=filterset.data.get(name, "")[:LONGEST_SHOWN],
        allowed=allowed or " ".join(map(str, messages)).rstrip("."),
    )


def _allowed(field: Any) -> str:
    """What a form field takes, in words; "" where only its own message says so."""
    if isinstance(field, IsoDateTimeField | forms.DateTimeField):
        return _("a time with a time zone, such as 2026-11-30T00:00:00Z")
    if isinstance(field, forms.UUIDField):
        return _("an id, such as 01a22e34-0954-7b95-99bd-9fe17af6f6d3")
    if isinstance(field, forms.NullBooleanField):
        return "true, false"
    choices = [str(value) for value, _label in getattr(field, "choices", [])]
    return ", ".join(choice for choice in choices if choice)
