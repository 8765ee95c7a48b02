"""Finishes the generated OpenAPI document: problems, keys and tags, which no serializer knows."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

Schema = dict[str, Any]

METHODS = {"get", "post", "put", "patch", "delete"}
PROBLEM: Schema = {
    "type": "object",
    "description": "RFC 9457. Facts about the error stand as further members.",
    "required": ["type", "code", "title", "status", "detail", "hint", "instance"],
    "additionalProperties": True,
    "properties": {
        "type": {"type": "string", "format": "uri-reference", "examples": ["/problems/not-found"]},
        "code": {"type": "string", "examples": ["not-found"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "hint": {"type": "string"},
        "instance": {"type": "string", "format": "uri"},
        "errors": {"type": "array", "items": {"$ref": "#/components/schemas/ProblemFault"}},
    },
}
FAULT: Schema = {
    "type": "object",
    "required": ["pointer", "code", "detail"],
    "properties": {
        "pointer": {"type": "string", "examples": ["#/spec/role_mode"]},
        "code": {"type": "string"},
        "detail": {"type": "string"},
    },
}
KEY = OpenApiParameter(
    "Idempotency-Key", OpenApiTypes.STR, OpenApiParameter.HEADER, required=True,
    pattern="^[A-Za-z0-9._~-]{8,128}$",
    description="A value of your own, the same on every retry of one request.",
)  # fmt: skip
REASON = OpenApiParameter(
    "X-Change-Reason", OpenApiTypes.STR, OpenApiParameter.HEADER,
    description="Reason for the audit log, percent-encoded UTF-8; change_reason in the body wins.",
)  # fmt: skip
DRY_RUN = OpenApiParameter(
    "dry_run", OpenApiTypes.BOOL, description="true checks everything and stores nothing."
)
SHAPES = (
    OpenApiParameter("fields", OpenApiTypes.STR, description="Only these members: a,b.c"),
    OpenApiParameter("omit", OpenApiTypes.STR, description="All but these members."),
    OpenApiParameter("brief", OpenApiTypes.BOOL, description="true: id, slug, display, links."),
)


class ApiSchema(AutoSchema):
    """Adds the headers and parameters that `resource.py` gives to every viewset."""

    def get_override_parameters(self) -> list[Any]:
        """Parameters beside those of filters and pages."""
        parameters: list[Any] = list(super().get_override_parameters())
        if self.method == "GET":
            return [*parameters, *SHAPES]
        action = getattr(self.view, "action", "")
        parameters.append(REASON)
        if self.method == "POST" and action not in getattr(self.view, "computations", ()):
            parameters.append(KEY)
        if action in getattr(self.view, "dry_runs", ()):
            parameters.append(DRY_RUN)
        if getattr(self.view, "detail", False):
            parameters.append(self._if_match())
        return parameters

    def _if_match(self) -> OpenApiParameter:
        return OpenApiParameter(
            "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER,
            required=bool(getattr(self.view, "requires_if_match", False)),
            description="The ETag of the version that the change was made for.",
        )  # fmt: skip


class TokenScheme(OpenApiAuthenticationExtension):
    """`Authorization: Bearer cst_…`."""

    target_class = "controlplane.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> Schema:
        """HTTP bearer."""
        return {"type": "http", "scheme": "bearer"}


class SessionScheme(OpenApiAuthenticationExtension):
    """The cookie of the console."""

    target_class = "controlplane.api.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> Schema:
        """A cookie; writes need the CSRF token beside it."""
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}


def finish(result: Schema, generator: Any, request: Any, public: bool) -> Schema:  # noqa: FBT001 - called by position by drf-spectacular
    """Add problem documents to every operation."""
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"], schemas["ProblemFault"] = PROBLEM, FAULT
    answer = {
        "description": "A problem document.",
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        },
    }
    for operations in result["paths"].values():
        for method, operation in operations.items():
            if method in METHODS:
                operation["responses"]["default"] = answer
    return result


def views(endpoints: list[Any]) -> list[Any]:
    """Addresses without the slash at the end, which is accepted but not part of the schema."""
    return [(path.removesuffix("/"), *rest) for path, *rest in endpoints]
