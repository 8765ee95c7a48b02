"""Pages by cursor: stable while rows come and go, at the same cost on page 1 and page 1,000.

A cursor holds the sort values and the id of the row at the edge of a page, the direction, and the
hash of order and filters it was made for. It is signed, so that its values need no checks of their
own. Order is always total: the sort keys, then the id; rows without a value come last.
"""

import hashlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core import signing
from django.db.models import F, Model, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.errors import InvalidCursorError
from controlplane.api.renderers import dump
from controlplane.common.errors import InvalidParameterError

DEFAULT_SIZE = 50
LARGEST_SIZE = 1000
COUNT_LIMIT = 10_000
SALT = "controlplane.api.cursor"
PARAMETERS = ("cursor", "page_size", "sort", "count")
PAGING = {"cursor", "page_size", "count"}


@dataclass(frozen=True, slots=True)
class Key:
    """One part of an order."""

    path: str
    descending: bool

    def value(self, row: Any) -> Any:
        """The row's value of this key; rows are models or dictionaries."""
        if isinstance(row, dict):
            return row[self.path]
        for name in self.path.split("__"):
            row = getattr(row, name, None)
        return row

    def order(self, *, backwards: bool) -> Any:
        """Ordering expression; rows without a value come last, backwards first."""
        descending = self.descending != backwards
        last = None if backwards else True
        first = True if backwards else None
        field = F(self.path)
        if descending:
            return field.desc(nulls_first=first, nulls_last=last)
        return field.asc(nulls_first=first, nulls_last=last)

    def beyond(self, value: Any, *, backwards: bool) -> Q:
        """Rows strictly behind the value (before it if backwards) in this key."""
        if value is None:
            return Q(**{f"{self.path}__isnull": False}) if backwards else Q(pk__in=[])
        side = "lt" if self.descending != backwards else "gt"
        condition = Q(**{f"{self.path}__{side}": value})
        return condition if backwards else condition | Q(**{f"{self.path}__isnull": True})

    def same(self, value: Any) -> Q:
        """Rows with this value."""
        return Q(**{f"{self.path}__isnull": True} if value is None else {self.path: value})


@dataclass(frozen=True, slots=True)
class Cursor:
    """The edge of a page."""

    values: list[Any]
    backwards: bool
    scope: str

    def text(self) -> str:
        """Opaque form."""
        plain = [None if value is None else _plain(value) for value in self.values]
        return signing.dumps([plain, self.backwards, self.scope], salt=SALT, compress=True)


class CursorPagination(BasePagination):
    """`page_size`, `cursor`, `sort`, `count`; a view names its `sort_fields` and `ordering`."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Rows of the page that the request asks for."""
        self.request = request
        self.size = _size(request)
        self.keys = _keys(request, queryset, view)
        self.scope = _scope(request, self.keys)
        self.count = _count(request, queryset)
        cursor = _cursor(request, self.scope, len(self.keys))
        backwards = cursor is not None and cursor.backwards
        rows = _beyond(queryset, self.keys, cursor) if cursor else queryset
        ordered = rows.order_by(*(key.order(backwards=backwards) for key in self.keys))
        page = list(ordered[: self.size + 1])
        more = len(page) > self.size
        page = page[: self.size]
        if backwards:
            page.reverse()
        self.next = self._edge(page, -1, backwards=False) if more or backwards else None
        has_previous = more if backwards else cursor is not None
        self.previous = self._edge(page, 0, backwards=True) if has_previous else None
        return page

    def get_paginated_response(self, data: Any) -> Response:
        """The page with its neighbours; `Link` repeats them as addresses."""
        body = {
            "items": data,
            "next": self.next,
            "previous": self.previous,
            "count": None,
            "as_of": timezone.now(),
        }
        if self.count is not None:
            body["count"] = min(self.count, COUNT_LIMIT)
            body["count_is_exact"] = self.count <= COUNT_LIMIT
        links = [
            f'<{self._address(cursor)}>; rel="{name}"'
            for name, cursor in (("next", self.next), ("prev", self.previous))
            if cursor
        ]
        return Response(body, headers={"Link": ", ".join(links)} if links else {})

    def _edge(self, page: list[Any], index: int, *, backwards: bool) -> str | None:
        if not page:
            return None
        values = [key.value(page[index]) for key in self.keys]
        return Cursor(values, backwards, self.scope).text()

    def _address(self, cursor: str) -> str:
        query = self.request.query_params.copy()
        query["cursor"] = cursor
        return f"{self.request.path}?{query.urlencode()}"

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """OpenAPI schema of a page."""
        cursor = {"type": ["string", "null"]}
        return {
            "type": "object",
            "required": ["items", "next", "previous", "count", "as_of"],
            "properties": {
                "items": schema,
                "next": cursor,
                "previous": cursor,
                "count": {"type": ["integer", "null"]},
                "count_is_exact": {"type": "boolean"},
                "as_of": {"type": "string", "format": "date-time"},
            },
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """OpenAPI parameters of a list."""
        sortable = sorted(getattr(view, "sort_fields", {}))
        return [
            _parameter("cursor", "Opaque place to go on from.", {"type": "string"}),
            _parameter(
                "page_size", f"Rows per page; {DEFAULT_SIZE} if left out.",
                {"type": "integer", "minimum": 1, "maximum": LARGEST_SIZE},
            ),
            _parameter(
                "sort", "Comma-separated fields, '-' in front for descending. "
                f"Allowed: {', '.join(sortable) or 'none'}.", {"type": "string"},
            ),
            _parameter("count", "true adds the number of rows.", {"type": "boolean"}),
        ]  # fmt: skip


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _size(request: Request) -> int:
    text = request.query_params.get("page_size", str(DEFAULT_SIZE))
    if len(text) > 4 or not text.isdecimal() or not 1 <= int(text) <= LARGEST_SIZE:
        raise InvalidParameterError(
            parameter="page_size", value=text, allowed=f"1 … {LARGEST_SIZE}"
        )
    return int(text)


def _count(request: Request, queryset: "QuerySet[Any]") -> int | None:
    text = request.query_params.get("count", "false")
    if text not in {"true", "false"}:
        raise InvalidParameterError(parameter="count", value=text, allowed="true, false")
    if text == "false":
        return None
    return queryset.order_by()[: COUNT_LIMIT + 1].count()


def _keys(request: Request, queryset: "QuerySet[Any]", view: Any) -> list[Key]:
    """Keys of the order that was asked for, or of the view, or of the model; then the id."""
    fields = getattr(view, "sort_fields", {})
    asked = [name for name in request.query_params.get("sort", "").split(",") if name]
    paths: list[str] = []
    for name in asked:
        path = fields.get(name.removeprefix("-"))
        if path is None:
            allowed = ", ".join(sorted(fields)) or "–"  # noqa: RUF001 - a dash for an empty list
            raise InvalidParameterError(parameter="sort", value=name, allowed=allowed)
        if path in {known.removeprefix("-") for known in paths}:
            raise InvalidParameterError(parameter="sort", value=name, allowed=_("each name once"))
        paths.append(f"-{path}" if name.startswith("-") else path)
    paths = paths or list(getattr(view, "ordering", ())) or _model_order(queryset.model)
    keys = [Key(path.removeprefix("-"), path.startswith("-")) for path in paths]
    primary = queryset.model._meta.pk.name  # noqa: SLF001 - Django's public model API
    keys = [Key(primary, key.descending) if key.path == "pk" else key for key in keys]
    if all(key.path != primary for key in keys):
        keys.append(Key(primary, keys[-1].descending if keys else False))
    return keys


def _model_order(model: type[Model]) -> list[str]:
    return [str(path) for path in model._meta.ordering or ()]  # noqa: SLF001 - Django's public model API


def _scope(request: Request, keys: list[Key]) -> str:
    filters = sorted(
        (name, value)
        for name, values in request.query_params.lists()
        for value in values
        if name not in PAGING
    )
    order = [(key.path, str(key.descending)) for key in keys]
    text = urlencode([*filters, *order])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _cursor(request: Request, scope: str, length: int) -> Cursor | None:
    text = request.query_params.get("cursor")
    if not text:
        return None
    try:
        values, backwards, made_for = signing.loads(text, salt=SALT)
    except signing.BadSignature as error:
        raise InvalidCursorError from error
    if made_for != scope or len(values) != length:
        raise InvalidCursorError
    return Cursor(values, backwards, made_for)


def _beyond(queryset: "QuerySet[Any]", keys: list[Key], cursor: Cursor) -> "QuerySet[Any]":
    """Rows behind the cursor: equal in the first n keys and beyond in the next, for each n."""
    condition, equal = Q(pk__in=[]), Q()
    for key, value in zip(keys, cursor.values, strict=True):
        condition |= equal & key.beyond(value, backwards=cursor.backwards)
        equal &= key.same(value)
    return queryset.filter(condition)


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int | str):
        return value
    return dump(value).decode().strip('"')
