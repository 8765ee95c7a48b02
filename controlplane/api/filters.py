"""Filters of lists: what is not known is refused, never ignored."""

import difflib
from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django_filters import utils
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.request import Request

from controlplane.api.errors import UnknownParameterError
from controlplane.common.errors import InvalidParameterError


class StrictFilterBackend(DjangoFilterBackend):
    """Filters by the view's `filterset_class`; a value that does not fit is a 400."""

    def filter_queryset(
        self, request: Request, queryset: "QuerySet[Any]", view: Any
    ) -> "QuerySet[Any]":
        """Rows that pass every filter."""
        filterset = self.get_filterset(request, queryset, view)
        if filterset is None:
            return queryset
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


def _invalid(filterset: Any, detail: Any) -> InvalidParameterError:
    name, messages = next(iter(detail.items()))
    choices = [
        str(value) for value, _label in getattr(filterset.form.fields.get(name), "choices", [])
    ]
    allowed = ", ".join(choice for choice in choices if choice) or " ".join(map(str, messages))
    return InvalidParameterError(
        parameter=name, value=filterset.data.get(name, ""), allowed=allowed
    )
