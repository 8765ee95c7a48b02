"""Questions about routing: explain a request that is not sent, replay a record, send a test.

No prompt text is stored or logged: a test's text goes to the router and nowhere else, and its audit
entry holds sizes only.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec
from django.db import transaction

from controlplane.audit import services as audit
from controlplane.common import permissions
from controlplane.decisions import selectors
from controlplane.decisions.errors import (
    DocumentUnknownError,
    ReplayImpossibleError,
    RouterAwayError,
    RouterRefusedError,
)
from controlplane.decisions.sources import router as source
from routing.core.document import PolicyName, PoolDocument, parse_document
from routing.core.record import record_of
from routing.explain.explanation import Explanation, Language, explain
from routing.pool.replay import ReplayError, replay

if TYPE_CHECKING:
    from controlplane.decisions.models import Decision
    from controlplane.serving.models import Pool
    from controlplane.tenancy.models import User

MOST_TEXT = 4000
"""Characters of a test's answer that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A record with its reason in words."""

    record: dict[str, Any]
    explanation: Explanation
    router: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteQuestion:
    """A request by sizes or by text."""

    pool: "Pool"
    tenant: str
    project: str = ""
    model: str = ""
    prompt_tokens: int | None = None
    prompt: str = field(default="", repr=False)
    max_tokens: int | None = None
    like: str = ""
    shared_tokens: int | None = None
    policy: str = ""
    force: Sequence[str] = ()
    avoid: Sequence[str] = ()
    slo_ttft_seconds: float | None = None
    slo_tpot_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What a request that was really sent came back with."""

    status: int
    decision_id: str
    router: str
    seconds: float
    text: str = field(repr=False)
    usage: Mapping[str, Any] = field(default_factory=dict)
    explained: Explained | None = None


def explain_row(row: "Decision", *, language: str = "en") -> Explanation:
    """Why a stored decision fell as it did."""
    return explain(row.record, language=_language(language))


def explain_route(*, question: RouteQuestion, actor: "User", language: str = "en") -> Explained:
    """What a router would do with such a request at this moment; nothing is sent.

    Raises NotPermittedError, RouterAwayError or RouterRefusedError.
    """
    permissions.require(actor, "routing.test_route")
    answer, router = _asked(question, language=language)
    told = msgspec.convert(answer["explanation"], Explanation)
    return Explained(record=answer["record"], explanation=told, router=router)


def replay_decision(
    *,
    record: Mapping[str, Any],
    policy: PolicyName | None = None,
    force: str = "",
    remove: Sequence[str] = (),
    document_version: int | None = None,
    language: str = "en",
) -> Explained:
    """Decide a record again, under the version it was made with unless another is named.

    Raises DocumentUnknownError or ReplayImpossibleError.
    """
    pool = str(record.get("pool", ""))
    document = _document(pool, document_version or _version_of(record))
    try:
        again = replay(record, document, policy=policy, force=force or None, remove=remove)
    except ReplayError as error:
        raise ReplayImpossibleError(detail=str(error)) from error
    told = record_of(again.decision) | {"unknown": list(again.unknown)}
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(told))
    return Explained(record=plain, explanation=explain(plain, language=_language(language)))


def send_test(*, question: RouteQuestion, key: str, actor: "User", language: str = "en") -> Tested:
    """Send a request for real, with an inference key of the caller; the key is not kept.

    Costs and limits of the key's project apply. Raises NotPermittedError, RouterAwayError or
    RouterRefusedError.
    """
    permissions.require(actor, "routing.test_route")
    _audit(question, actor)
    port = _port_of(question.pool)
    router = selectors.router_named(port.name)
    model = question.model or question.pool.model.slug
    body = {
        "model": model,
        "messages": [{"role": "user", "content": question.prompt}],
        "max_tokens": question.max_tokens or 64,
    }
    headers = {"Authorization": f"Bearer {key}"}
    if question.force:
        headers["x-consort-endpoints"] = ",".join(question.force)
    if question.avoid:
        headers["x-consort-avoid-endpoints"] = ",".join(question.avoid)
    began = time.monotonic()
    try:
        answer = source.complete(router.public_url, body, headers)
    except source.RouterUnreachableError as error:
        raise RouterAwayError(pool=question.pool.slug, detail=str(error)) from error
    seconds = time.monotonic() - began
    text, usage = _read(answer)
    return Tested(
        status=answer.status,
        decision_id=answer.decision_id,
        router=port.name,
        seconds=seconds,
        text=text,
        usage=usage,
        explained=_explained(port, answer.decision_id, language=language),
    )


@transaction.atomic
def _audit(question: RouteQuestion, actor: "User") -> None:
    audit.record(
        actor=actor,
        action="route.test",
        subject=question.pool,
        after={
            "prompt_characters": len(question.prompt),
            "max_tokens": question.max_tokens,
            "force": list(question.force),
            "avoid": list(question.avoid),
        },
    )


def _asked(question: RouteQuestion, *, language: str) -> tuple[dict[str, Any], str]:
    port = _port_of(question.pool)
    wanted: dict[str, Any] = {
        "pool": question.pool.slug,
        "tenant": question.tenant,
        "project": question.project,
        "model": question.model or None,
        "max_tokens": question.max_tokens,
        "like": question.like or None,
        "shared_tokens": question.shared_tokens,
        "policy": question.policy or None,
        "force": list(question.force),
        "avoid": list(question.avoid),
        "slo_ttft_seconds": question.slo_ttft_seconds,
        "slo_tpot_seconds": question.slo_tpot_seconds,
        "language": _language(language),
    }
    if question.prompt:
        model = question.model or question.pool.model.slug
        messages = [{"role": "user", "content": question.prompt}]
        wanted["body"] = {"model": model, "messages": messages, "max_tokens": question.max_tokens}
    else:
        wanted["prompt_tokens"] = question.prompt_tokens
    try:
        return source.ask(port, "/admin/explain", wanted), port.name
    except source.QuestionRefusedError as error:
        raise RouterRefusedError(router=port.name, detail=str(error)) from error
    except source.RouterUnreachableError as error:
        raise RouterAwayError(pool=question.pool.slug, detail=str(error)) from error


def _port_of(pool: "Pool") -> source.RouterPort:
    port = selectors.port_with_pool(pool.slug)
    if port is None:
        raise RouterAwayError(pool=pool.slug, detail="none was heard lately")
    return port


def _explained(port: source.RouterPort, decision_id: str, *, language: str) -> Explained | None:
    """The record of a test, while the router has it; a test is answered without it too."""
    if not decision_id:
        return None
    try:
        record = source.find(port, decision_id)
    except (source.QuestionRefusedError, source.RouterUnreachableError):
        return None
    told = explain(record, language=_language(language))
    return Explained(record=record, explanation=told, router=port.name)


def _read(answer: source.Completed) -> tuple[str, Mapping[str, Any]]:
    try:
        body = msgspec.json.decode(answer.content)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            return str(body["error"]["message"])[:MOST_TEXT], {}
        text = body["choices"][0]["message"]["content"] or ""
        return str(text)[:MOST_TEXT], body.get("usage") or {}
    except (msgspec.DecodeError, ValueError, LookupError, TypeError, AttributeError):
        return answer.content[: 4 * MOST_TEXT].decode("utf-8", "replace")[:MOST_TEXT], {}


def _version_of(record: Mapping[str, Any]) -> int:
    """Raises ReplayImpossibleError for a record that names no version a document can have."""
    version = record.get("document_version")
    if isinstance(version, int) and 0 < version < 2**53:
        return version
    raise ReplayImpossibleError(detail="document_version of the record is no version.")


def _document(pool: str, version: int) -> PoolDocument:
    content = selectors.document_content(pool, version)
    if content is None:
        raise DocumentUnknownError(pool=pool, version=version)
    return parse_document(content.encode())


def _language(code: str) -> Language:
    return "ko" if code.startswith("ko") else "en"
