"""Parts of a page that ask again: 304 when nothing changed, 286 when nothing ever will."""

import hashlib
from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation

from controlplane.common.http import wants_fragment

STOP = 286
"""Status that makes htmx swap the content and stop asking."""


def tag_of(*parts: object) -> str:
    """Short tag of everything a fragment shows; the language is part of it."""
    text = "|".join(str(part) for part in (translation.get_language(), *parts))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_current(request: HttpRequest, tag: str) -> bool:
    """True if the browser shows this very state already."""
    return wants_fragment(request) and request.headers.get("If-None-Match") == tag


def unchanged() -> HttpResponse:
    """Nothing to swap."""
    return HttpResponse(status=304)


def page_or_fragment(
    request: HttpRequest,
    *,
    page: str,
    fragment: str,
    context: Mapping[str, object],
    final: bool = False,
) -> HttpResponse:
    """Render the page, or for htmx its moving part; both live at one address."""
    if not wants_fragment(request):
        response = render(request, page, dict(context))
    else:
        told = {**context, "fragment": True}
        response = render(request, fragment, told, status=STOP if final else 200)
        response["Cache-Control"] = "no-store"
    response["Vary"] = "HX-Request, Accept-Language, Cookie"
    return response
