"""Questions to a running router that change nothing: explain a request that is not sent, replay.

A request to be explained is given by sizes, or as a body; `like` names a recorded decision whose
prefix it shares, so that live caches answer without anybody's text. Hard filters hold for tests
too: a forced endpoint that they remove is refused.
"""

import secrets
from typing import Annotated, Any, TypeVar

import msgspec
import numpy as np

from routing.core.document import DocumentError, PolicyName, PoolDocument, Profile, parse_document
from routing.core.openai import ParsedBody, RequestError, read_fields
from routing.core.record import record_of
from routing.core.request import InferenceRequest
from routing.explain.explanation import Language, explain
from routing.pool.replay import ReplayError, replay
from routing.servers import calls, clock, rewriting
from routing.servers.decisions import DecisionRing
from routing.servers.documents import LoadedPool
from routing.servers.errors import problem
from routing.servers.state import RouterState

Answer = tuple[int, bytes]
T = TypeVar("T")
ABSENT = msgspec.Raw(b"null")
Tokens = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Names = Annotated[tuple[str, ...], msgspec.Meta(max_length=100)]


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """The question cannot be answered; status and problem say why."""

    def __init__(self, status: int, code: str, detail: str, **facts: Any) -> None:
        super().__init__(detail)
        self.answer: Answer = status, problem(code, detail, **facts)


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request that is only to be decided."""

    pool: str
    tenant: str
    project: str = ""
    key_id: str = "test"
    model: str | None = None
    """`None` is the pool's first."""
    prompt_tokens: Tokens | None = None
    max_tokens: Tokens | None = None
    like: str | None = None
    """Recorded decision whose prefix is shared."""
    shared_tokens: Tokens | None = None
    """How much of it; `None` is all that fits."""
    path: str = "/v1/chat/completions"
    body: msgspec.Raw = ABSENT
    """A whole request instead of sizes; it is parsed and forgotten."""
    priority: int = 0
    slo_ttft_seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    slo_tpot_seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    policy: PolicyName | None = None
    force: Names = ()
    avoid: Names = ()
    language: Language = "en"


class ReplayQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A record, or the id of one that the router still has, and what is to be different."""

    record: dict[str, Any] | None = None
    decision: str | None = None
    document: msgspec.Raw = ABSENT
    """Absent is the one in service."""
    policy: PolicyName | None = None
    profiles: tuple[Profile, ...] | None = None
    force: str | None = None
    remove: Names = ()
    language: Language = "en"


def answer_explain(state: RouterState, body: bytes) -> Answer:
    """Decide a request that is not sent, with the reason in words."""
    try:
        question = _read(body, Question)
        pool = _pool(state, question.pool)
        request = request_of(question, pool, state.decisions)
    except Refused as refused:
        return refused.answer
    decision = pool.router.decide(
        request, now=clock.monotonic(), policy=question.policy, keep="always"
    )
    return 200, explained(
        record_of(decision) | {"document_hash": pool.sha256, "router": state.name},
        language=question.language,
    )


def answer_replay(state: RouterState, body: bytes) -> Answer:
    """Decide a record again; nothing of the live state is used but the document."""
    try:
        question = _read(body, ReplayQuestion)
        record = question.record or _recorded(state, question.decision)
        document = _document(state, question, record)
        replayed = replay(
            record,
            document,
            policy=question.policy,
            force=question.force,
            remove=question.remove,
            profiles=question.profiles,
        )
    except Refused as refused:
        return refused.answer
    except ReplayError as error:
        return 422, problem("replay-impossible", str(error))
    except DocumentError as error:
        return 422, problem("document-refused", error.message, pointer=error.pointer)
    again = record_of(replayed.decision) | {"unknown": list(replayed.unknown)}
    return 200, explained(again, language=question.language)


def answer_decision(state: RouterState, decision_id: str) -> Answer:
    """One record with its outcome, and the reason in words."""
    try:
        record = _recorded(state, decision_id)
    except Refused as refused:
        return refused.answer
    return 200, explained(record, language="en")


def explained(record: dict[str, Any], *, language: Language) -> bytes:
    """The record with its explanation beside it, as JSON."""
    told = explain(record, language=language)
    return msgspec.json.encode({"record": record, "explanation": told})


def request_of(question: Question, pool: LoadedPool, ring: DecisionRing) -> InferenceRequest:
    """The request that a question is about. Raises Refused."""
    asked = question.model or pool.document.models[0].name
    caller = rewriting.caller_of(question.tenant, question.key_id)
    if bytes(question.body) != b"null":
        asked, parsed = _parsed_body(question, pool, caller)
        model = parsed.model
    else:
        model = rewriting.model_of(pool, asked, caller=caller)
        parsed = _parsed_sizes(question, pool, model, ring)
    spec = next((spec for spec in pool.document.models if spec.name == model), None)
    return InferenceRequest(
        id=f"test-{secrets.token_hex(6)}",
        path=question.path,
        model=model,
        tenant=question.tenant,
        project=question.project,
        key_id=question.key_id,
        parsed=parsed,
        arrived_at=clock.monotonic(),
        priority=question.priority,
        slo_ttft_seconds=question.slo_ttft_seconds,
        slo_tpot_seconds=question.slo_tpot_seconds,
        forced=question.force,
        avoided=question.avoid,
        adapter=model if spec is not None and spec.adapter_of else None,
        asked_model=None if model == asked else asked,
    )


def _parsed_body(question: Question, pool: LoadedPool, caller: str) -> tuple[str, ParsedBody]:
    """The name that the body asks for, and the body under the name that is served."""
    body = bytes(question.body)
    try:
        read = read_fields(question.path, body)
        asked: str = read[1].model
        read[1].model = rewriting.model_of(pool, asked, caller=caller)
        salt = pool.salts.get(question.tenant)
        return asked, calls.parsed_of(pool, question.path, read, body, salt=salt)
    except RequestError as error:
        raise Refused(400, "bad-request", error.message, pointer=error.param or "") from error


def _parsed_sizes(
    question: Question, pool: LoadedPool, model: str, ring: DecisionRing
) -> ParsedBody:
    if question.prompt_tokens is None:
        raise Refused(400, "bad-request", "The question needs prompt_tokens or a body.")
    ratio = pool.router.bytes_per_token(model)
    keys = np.zeros(0, dtype=np.uint64)
    chunk_tokens = pool.document.prompt_identity.chunk_bytes / ratio
    if question.like is not None:
        prefix = ring.prefix_of(question.like)
        if prefix is None:
            raise Refused(
                404, "not-found", f"The router does not remember decision '{question.like}' now."
            )
        shared = min(question.shared_tokens or question.prompt_tokens, question.prompt_tokens)
        chunk_tokens = prefix.chunk_tokens
        keys = prefix.keys[: int(shared / chunk_tokens)]
    return ParsedBody(
        model=model,
        stream=True,
        include_usage=False,
        max_tokens=question.max_tokens,
        n=1,
        prompt_bytes=int(question.prompt_tokens * ratio),
        prompt_tokens=question.prompt_tokens,
        block_keys=keys,
        chunk_tokens=chunk_tokens,
        has_exact_tokens=False,
        user=None,
    )


def _read(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, "bad-request", f"The question cannot be read: {error}.") from error


def _pool(state: RouterState, name: str) -> LoadedPool:
    pool = state.directory.pools.get(name)
    if pool is None:
        known = sorted(state.directory.pools)
        raise Refused(404, "not-found", f"There is no pool '{name}' here.", allowed=known)
    return pool


def _recorded(state: RouterState, decision_id: str | None) -> dict[str, Any]:
    record = None if decision_id is None else state.decisions.find(decision_id)
    if record is None:
        detail = f"There is no record of decision '{decision_id}' here; it may be too old."
        raise Refused(404, "not-found", detail)
    return record


def _document(state: RouterState, question: ReplayQuestion, record: dict[str, Any]) -> PoolDocument:
    if bytes(question.document) != b"null":
        return parse_document(bytes(question.document))
    return _pool(state, str(record.get("pool"))).document
