"""Objects of a pool over REST: what may be asked, and YAML as the form of the answer."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import BaseRenderer
from rest_framework.response import Response

from controlplane.common.http import ApiRequest
from controlplane.serving import selectors
from controlplane.serving.renderers import renderers

NAMES = tuple(field.name for field in fields(selectors.ManifestQuestion))
PARAMETERS = [
    OpenApiParameter("renderer", enum=sorted(renderers()), default="plain", description="Format."),
    OpenApiParameter("cluster", description="Cluster, when the pool's engines are in several."),
    OpenApiParameter(
        "policy",
        enum=list(selectors.EXPORT_POLICIES),
        description="In place of the pool's own, where the format does not have that one.",
    ),
]


class YamlRenderer(BaseRenderer):
    """A text that is YAML already; anything else, such as a problem, is JSON, which YAML holds."""

    media_type = "application/yaml"
    format = "yaml"
    charset = "utf-8"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        """The text as it is."""
        text = data if isinstance(data, str) else json.dumps(data, default=str)
        return text.encode()


def written(request: ApiRequest, text: str) -> Response:
    """An answer in YAML, whatever form the caller accepts; problems keep their own."""
    request.accepted_renderer = YamlRenderer()
    request.accepted_media_type = YamlRenderer.media_type
    return Response(text)


def question_of(asked: Mapping[str, str]) -> selectors.ManifestQuestion:
    """What the caller wants written."""
    return selectors.ManifestQuestion(**{name: asked[name] for name in NAMES if name in asked})
