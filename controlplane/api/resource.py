"""What every resource does besides its own work. The router mixes it into each viewset.

So an app's viewset stays a translation table and needs to know nothing of this folder. What it may
say about itself, as class attributes:

- `query_parameters`: names of query parameters it reads itself;
- `sort_fields`: names for `sort`, each with its ORM path; `ordering`: ORM paths without `sort`;
- `lookup_slug`: column beside the id by which a detail address finds the row ("slug" if it exists);
- `lookup_first`: which rows a name means before all others that have it;
- `view_action`: permission that a read needs, by default `app.view_model`; None: rows decide;
- `requires_if_match`: changes of a row must say which version they were made for;
- `computations`: POST actions that change nothing, so that they need no Idempotency-Key;
- `calls_out`: POST actions that ask another server, so that no transaction waits for it;
- `dry_runs`: actions that offer `dry_run=true`: everything is checked and nothing is stored;
- `heavy_actions`: actions that count against the small limit.
"""

import functools
from collections.abc import Callable
from datetime import UTC
from typing import Any
from urllib.parse import unquote

from django.db import models, transaction
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api import idempotency, shapes, tags
from controlplane.api.errors import InvalidHeaderError, NameNotUniqueError
from controlplane.api.filters import filter_names, refuse_unknown
from controlplane.api.pagination import PARAMETERS as PAGE_PARAMETERS
from controlplane.api.throttles import CredentialThrottle
from controlplane.common import labels, permissions
from controlplane.common.errors import InvalidParameterError
from controlplane.common.http import ApiRequest
from controlplane.common.lookup import rows_named
from controlplane.common.tenants import has_field
from controlplane.common.versions import latest

READS = {"GET", "HEAD", "OPTIONS"}
SHAPES = ("fields", "omit", "brief")
REASON_LENGTH = 200

Answer = Callable[..., Response]


class ResourceBehaviour(viewsets.GenericViewSet[Any]):
    """Strict parameters, look-up by slug, permissions of reads, tags, keys, limits."""

    request: ApiRequest
    throttle_classes = [CredentialThrottle]
    query_parameters: tuple[str, ...] = ()
    computations: frozenset[str] = frozenset()
    calls_out: frozenset[str] = frozenset()
    dry_runs: frozenset[str] = frozenset()
    requires_if_match = False
    lookup_first: models.Q | None = None
    found: models.Model | None = None
    """The row of this request, once it was looked up."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Work in UTC: the time zone that a person chose is for pages, not for the API."""
        with timezone.override(UTC):
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Checks before the work, then the work wrapped in what its verb needs."""
        super().initial(request, *args, **kwargs)
        refuse_unknown(request.query_params, allowed=self._parameters())
        _refuse_nul(request)
        # Before the work: what it wrote must not be answered with an error of its form.
        shapes.check(request.query_params)
        if request.method in READS:
            self._require_view()
            return
        _take_reason(request)
        name = str(request.method).lower()
        if hasattr(self, name):
            setattr(self, name, functools.partial(self._write, getattr(self, name)))

    def get_object(self) -> Any:
        """The row of the address, by id or by slug; 404 also if it may not be seen."""
        row = self._named_row(self.get_queryset())
        if row is None:
            raise Http404
        self.check_object_permissions(self.request, row)
        self.found = row
        return row

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        """Shape, tag and limits of the answer."""
        if response.status_code < 300 and hasattr(request, "query_params"):
            response.data = shapes.shaped(response.data, request.query_params)
            response = tags.tagged(request, response, row=self.found)
        standing = getattr(request, "rate_limit", None)
        if standing is not None:
            for name, value in standing.headers().items():
                response[name] = value
        response.setdefault("Cache-Control", "no-store")
        return super().finalize_response(request, response, *args, **kwargs)

    def _write(self, answer: Answer, request: ApiRequest, *args: Any, **kwargs: Any) -> Response:
        work = functools.partial(self._guarded, answer, request, *args, **kwargs)
        key = None
        if request.method == "POST":
            key = idempotency.key_of(
                request, required=self.action not in self.computations and not _is_dry_run(request)
            )
        if _is_dry_run(request):
            return _rolled_back(work)
        if key is None:
            return work()
        return idempotency.once(
            request,
            key,
            work,
            answer_error=self.handle_exception,
            calls_out=self.action in self.calls_out,
        )

    def _guarded(self, answer: Answer, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Run the work under the lock of its row if it names the version it was made for."""
        is_detail = bool(self.lookup_url_kwarg or self.lookup_field) and self.detail
        if not is_detail or not tags.names_version(request, required=self.requires_if_match):
            return answer(request, *args, **kwargs)
        with transaction.atomic():
            tags.require_version(request, latest(self.get_object(), lock=True))
            return answer(request, *args, **kwargs)

    def _parameters(self) -> list[str]:
        allowed = [*self.query_parameters, *SHAPES]
        if self.action == "list":
            allowed += [*PAGE_PARAMETERS, *filter_names(self)]
        if self.action in self.dry_runs:
            allowed.append("dry_run")
        return allowed

    def _require_view(self) -> None:
        action = getattr(self, "view_action", "")
        if action == "":
            action = labels.view_action(self.get_queryset().model)
        if action is not None:
            permissions.require(self.request.user, action)

    def _named_row(self, rows: "models.QuerySet[Any]") -> Any:
        """The row that the address names; None if there is none.

        A name that several rows have is refused: an action must not hit the first of them.
        """
        value = str(self.kwargs[self.lookup_url_kwarg or self.lookup_field])
        name = getattr(self, "lookup_slug", "slug")
        found = rows_named(
            rows, value, by=name if has_field(rows.model, name) else None, first=self.lookup_first
        )
        if len(found) > 1:
            raise NameNotUniqueError(name=value, ids=", ".join(str(row.pk) for row in found))
        return found[0] if found else None


def _refuse_nul(request: Request) -> None:
    """No column holds U+0000, so no parameter can ask for it."""
    for name, values in request.query_params.lists():
        if any("\0" in value for value in values):
            raise InvalidParameterError(
                parameter=name, value="\\0", allowed=_("text without the character U+0000")
            )


def _is_dry_run(request: Request) -> bool:
    given = request.query_params.get("dry_run", "false")
    if given not in {"true", "false"}:
        raise InvalidParameterError(parameter="dry_run", value=given, allowed="true, false")
    return given == "true"


def _rolled_back(work: Callable[[], Response]) -> Response:
    """The answer that the work would give; nothing stays, and nothing is queued."""
    with transaction.atomic():
        answer = work()
        transaction.set_rollback(True)
    return Response({"dry_run": True, "result": answer.data})


def _take_reason(request: Request) -> None:
    """Put the header X-Change-Reason into the body, unless the body has a reason of its own."""
    given = request.headers.get("X-Change-Reason")
    if given is None or not isinstance(request.data, dict):
        return
    try:
        reason = unquote(given, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidHeaderError(
            header="X-Change-Reason", value=given[:REASON_LENGTH], expected="percent-encoded UTF-8"
        ) from error
    request.data.setdefault("change_reason", reason)
