"""Pages of models: what can be served, on which accelerators it fits, where its files are."""

from collections import defaultdict
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from controlplane.common import permissions
from controlplane.common.http import ConsoleRequest
from controlplane.console.freshness import Source
from controlplane.serving import presets, selectors
from controlplane.serving.models import Model
from controlplane.serving.selectors.files import artefacts_for_viewer, presences_for_viewer

MOST_PRESENCES = 500
_BOUNDS = {
    "tensor_parallel": (1, 64),
    "context_tokens": (1, 10_000_000),
    "concurrency": (1, 100_000),
}


@login_required
def models(request: ConsoleRequest) -> HttpResponse:
    """Models of the catalogue with their pools and files, and presets that are not loaded."""
    permissions.require(request.user, "serving.view_model")
    rows = list(selectors.models_for_viewer(request.user).prefetch_related("pools", "artefacts"))
    loaded = {row.slug for row in rows}
    shipped = [preset for slug, preset in sorted(presets.presets().items()) if slug not in loaded]
    context = {"models": rows, "presets": shipped}
    return render(request, "serving/models.html", context)


@login_required
def model(request: ConsoleRequest, slug: str) -> HttpResponse:
    """One model or preset: its shape, where it fits, its files."""
    permissions.require(request.user, "serving.view_model")
    row = selectors.models_for_viewer(request.user).filter(slug=slug).first()
    preset = presets.presets().get(slug)
    if row is None and preset is None:
        raise Http404
    question = _question(request, slug)
    files = artefacts_for_viewer(request.user).filter(model=row) if row else []
    context = {
        "slug": slug,
        "model": row,
        "preset": preset,
        "question": question,
        "fits": selectors.model_fits(request.user, question, model=row) or [],
        "files": _files(request, row, list(files)),
        "pools": selectors.pools_for_viewer(request.user).filter(model=row) if row else [],
        "sources": [Source(_("Catalogue"), row.updated_at, expected_seconds=10**9)] if row else [],
    }
    return render(request, "serving/model.html", context)


def _question(request: ConsoleRequest, slug: str) -> selectors.Question:
    """The load that is asked for; what makes no sense is left at its usual value."""
    asked: dict[str, Any] = {}
    for name, (least, most) in _BOUNDS.items():
        text = request.GET.get(name, "")
        if text.isascii() and text.isdecimal() and least <= int(text[:12]) <= most:
            asked[name] = int(text[:12])
    return selectors.Question(model=slug, **asked)


def _files(request: ConsoleRequest, row: Model | None, files: list[Any]) -> list[tuple[Any, Any]]:
    """Artefacts of the model, each with the nodes on which it was seen; two queries."""
    if row is None:
        return []
    seen: dict[Any, list[Any]] = defaultdict(list)
    rows = presences_for_viewer(request.user).filter(artefact__model=row)
    for presence in rows.order_by("artefact", "node__hostname")[:MOST_PRESENCES]:
        seen[presence.artefact_id].append(presence)
    return [(artefact, seen[artefact.pk]) for artefact in files]
