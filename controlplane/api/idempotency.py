"""Idempotency-Key: of several deliveries of one request, one has an effect and all one answer.

The first caller inserts a `running` record in a transaction of its own. The change and the mark
`done` with the answer then commit together, so a crash at any point leaves either both or neither;
a `running` record is taken over once its lock has lapsed.

Work that asks another server runs outside such a transaction, which would be held open as long as
the other one takes. What it stores commits by itself, so after a crash it may be done twice.
"""

import hashlib
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from uuid import UUID

import orjson
from django.db import transaction
from django.utils import timezone
from rest_framework.response import Response

from controlplane.api.errors import (
    IdempotencyInProgressError,
    IdempotencyKeyMalformedError,
    IdempotencyKeyRequiredError,
    IdempotencyKeyReusedError,
)
from controlplane.api.renderers import dump
from controlplane.common.http import ApiRequest
from controlplane.operations.models import IdempotencyRecord

LOCK = timedelta(seconds=60)
OUTWARD_LOCK = timedelta(seconds=180)
"""Longer than the time-outs of a call to another server together."""
KEPT = timedelta(hours=24)
BODY_LIMIT = 64 * 1024
HEADERS = ("Location", "ETag", "Retry-After", "Operation-Location")
KEPT_FAILURES = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}
_KEY = re.compile(r"^[A-Za-z0-9._~-]{8,128}$")

State = IdempotencyRecord.State
Handler = Callable[[], Response]


@dataclass(frozen=True, slots=True)
class Attempt:
    """The right to work for a key."""

    record_id: UUID
    locked_until: Any


def key_of(request: ApiRequest, *, required: bool) -> str | None:
    """The key of the request without its quotes; None if there is none and none is needed."""
    given = request.headers.get("Idempotency-Key")
    if given is None:
        if required:
            raise IdempotencyKeyRequiredError
        return None
    key = given.strip().strip('"')
    if not _KEY.match(key):
        raise IdempotencyKeyMalformedError(value=given[:200])
    return key


def once(
    request: ApiRequest,
    key: str,
    handler: Handler,
    *,
    answer_error: Callable[[Exception], Response],
    calls_out: bool = False,
) -> Response:
    """Run the handler, or give the stored answer of the run before.

    Raises IdempotencyInProgressError or IdempotencyKeyReusedError. `answer_error` renders what the
    handler raises; 2xx, 400 and 422 are kept, after anything else the key may be tried again.
    `calls_out` says that the handler asks another server.
    """
    fingerprint = _fingerprint(request)
    lock = OUTWARD_LOCK if calls_out else LOCK
    attempt = _claim(request.user.pk, key, fingerprint, lock=lock)
    if attempt is None:
        return _replay(request, key, fingerprint)
    try:
        with nullcontext() if calls_out else transaction.atomic():
            response = handler()
            _keep(attempt, response)
    except Exception as error:  # noqa: BLE001 - whatever it is, the record must not stay locked
        response = answer_error(error)
        with transaction.atomic():
            _keep(attempt, response)
    return response


def _fingerprint(request: ApiRequest) -> str:
    query = sorted((n, v) for n, values in request.query_params.lists() for v in values)
    body = dump(request.data if request.data is not None else {})
    parts = [str(request.method), request.path, dump(query).decode(), _sorted(body)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _sorted(body: bytes) -> str:

    return orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS).decode()


def _claim(actor_id: UUID, key: str, fingerprint: str, *, lock: timedelta) -> Attempt | None:
    """The right to work: on a new record, or on one whose worker is presumed dead."""
    now = timezone.now()
    record = IdempotencyRecord(
        actor_id=actor_id, key=key, fingerprint=fingerprint, locked_until=now + lock,
        expires_at=now + KEPT,
    )  # fmt: skip
    mine = IdempotencyRecord.objects.filter(actor_id=actor_id, key=key)
    mine.filter(expires_at__lte=now).delete()
    IdempotencyRecord.objects.bulk_create([record], ignore_conflicts=True)
    if mine.filter(pk=record.pk).exists():
        return Attempt(record.pk, record.locked_until)
    lapsed = mine.filter(state=State.RUNNING, locked_until__lt=now, fingerprint=fingerprint)
    if not lapsed.update(locked_until=now + lock):
        return None
    return Attempt(mine.values_list("pk", flat=True).get(), now + lock)


def _keep(attempt: Attempt, response: Response) -> None:
    """Store the answer, or drop the record if the request may be tried again."""
    mine = IdempotencyRecord.objects.filter(
        pk=attempt.record_id, state=State.RUNNING, locked_until=attempt.locked_until
    )
    if response.status_code >= 300 and response.status_code not in KEPT_FAILURES:
        mine.delete()
        return
    body = dump(_without_secret(response))
    stored = mine.update(
        state=State.DONE,
        response_status=response.status_code,
        response_headers=_kept_headers(response),
        response_body=body if len(body) <= BODY_LIMIT else None,
        updated_at=timezone.now(),
    )
    if not stored:
        # Somebody presumed this attempt dead and took over: its effect must not commit as well.
        raise IdempotencyInProgressError


def _replay(request: ApiRequest, key: str, fingerprint: str) -> Response:
    record = IdempotencyRecord.objects.filter(actor_id=request.user.pk, key=key).first()
    if record is not None and record.fingerprint != fingerprint:
        raise IdempotencyKeyReusedError
    if record is None or record.state != State.DONE:
        raise IdempotencyInProgressError(retry_after_seconds=1)

    data = orjson.loads(bytes(record.response_body)) if record.response_body else None
    headers = dict(record.response_headers or {}) | {"Idempotency-Replayed": "true"}
    content_type = headers.pop("Content-Type", None)
    return Response(data, status=record.response_status, headers=headers, content_type=content_type)


def _kept_headers(response: Response) -> dict[str, str]:
    headers = {name: response[name] for name in HEADERS if name in response}
    return headers | ({"Content-Type": response.content_type} if response.content_type else {})


def _without_secret(response: Response) -> Any:
    """What may be stored; `not_kept` of an answer says what stands there instead."""
    data = response.data
    if not isinstance(data, dict):
        return data
    if data.get("secret") is not None:
        data = data | {"secret": None, "secret_shown": True}
    return data | getattr(response, "not_kept", {})
