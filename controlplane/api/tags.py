"""ETag, If-None-Match and If-Match."""

import hashlib
from http import HTTPStatus
from typing import Any

from django.db.models import Model
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.api.errors import IfMatchRequiredError, VersionMismatchError
from controlplane.api.renderers import dump
from controlplane.common.versions import latest, tag_of, version_of


def names_version(request: Request, *, required: bool) -> bool:
    """True if the request says which version it was made for; raises if it must and does not.

    `*` fits any version, which would defeat the purpose where a version is required.
    """
    given = request.headers.get("If-Match", "").strip()
    if required and given in {"", "*"}:
        raise IfMatchRequiredError
    return given not in {"", "*"}


def require_version(request: Request, row: Model | None) -> None:
    """Raise VersionMismatchError unless a tag of If-Match fits the locked row."""
    current = tag_of(row) if row is not None else None
    given = [version_of(tag) for tag in request.headers["If-Match"].split(",")]
    if current is None or version_of(current) not in given:
        raise VersionMismatchError(current_etag=current)


def tagged(request: Request, response: Response, *, row: Model | None) -> Response:
    """The answer with its tag; a read whose caller has it already becomes 304.

    The tag of one row is that of its version and observation, of anything else the hash of the
    body. After a write the row is read again, for the version that the write made.
    """
    is_read = request.method in {"GET", "HEAD"}
    if row is not None and not is_read:
        row = latest(row)
    tag = tag_of(row) if row is not None else None
    if tag is None and is_read:
        tag = f'W/"{_body_hash(response.data)}"'
    if tag is None:
        return response
    response["ETag"] = tag
    if is_read and tag in _known_tags(request):
        return Response(status=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
    return response


def _known_tags(request: Request) -> list[str]:
    return [tag.strip() for tag in request.headers.get("If-None-Match", "").split(",")]


def _body_hash(data: Any) -> str:
    # The time of the answer is no part of what it says.
    stable = {k: v for k, v in data.items() if k != "as_of"} if isinstance(data, dict) else data
    return hashlib.sha256(dump(stable)).hexdigest()[:24]
