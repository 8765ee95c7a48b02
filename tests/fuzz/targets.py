"""What outsiders send, one function per reader: any bytes in, only the declared errors out.

Each target also holds what it promises of a good input, so that a wrong answer is found as well as
a crash. Used by the corpus tests and by `python -m tests.fuzz`.
"""

import dataclasses
import math
from collections.abc import Callable

import msgspec

from routing.core.document import (
    DocumentError,
    PoolDocument,
    PromptIdentity,
    encode_document,
    parse_document,
)
from routing.core.kv_events import EventDecodeError
from routing.core.openai import RequestError, parse_request
from routing.core.signals import EngineSignals
from routing.engines.base import Engine
from routing.engines.sglang import ENGINE as SGLANG
from routing.engines.vllm import ENGINE as VLLM
from tests.benchmarks.bench_index import make_feed

ENGINES: tuple[Engine, ...] = (VLLM, SGLANG)
PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/messages",
)


def events(payload: bytes) -> None:
    """Cache events, as each engine's decoder reads them, and what the index makes of them."""
    for engine in ENGINES:
        try:
            batch = engine.event_decoder().decode(payload)
        except EventDecodeError:
            continue
        feed, (instance,), _ = make_feed(1)
        feed.arrived(instance, 0, now=0.0)
        feed.take(instance, batch, now=0.0)
        feed.take(instance, batch, now=1.0)
        assert feed.describe(instance, now=2.0) is not None
        feed.unfollow(instance)


def metrics(page: bytes) -> None:
    """A metrics page: whatever it is, numbers come out or nothing."""
    for engine in ENGINES:
        signals = engine.signals(page)
        for field in dataclasses.fields(EngineSignals):
            value = getattr(signals, field.name)
            assert not isinstance(value, float) or math.isfinite(value), field.name
        engine.waiting_tokens(page)


def body(raw: bytes) -> None:
    """A request's body on every path."""
    for path in PATHS:
        refusal = _refusal_of_body(path, raw)
        if refusal is not None:
            assert 400 <= refusal.status < 500
            assert refusal.message.endswith((".", "?"))


def _refusal_of_body(path: str, raw: bytes) -> RequestError | None:
    try:
        parsed = parse_request(path, raw, identity=PromptIdentity())
    except RequestError as error:
        return error
    assert parsed.prompt_tokens >= 1
    assert parsed.block_keys.dtype == "uint64"
    return None


def answer(raw: bytes) -> None:
    """An engine's answer: usage or nothing, never a number below zero."""
    for engine in ENGINES:
        usage = engine.usage(raw)
        if usage is not None:
            counts = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
            assert all(count is None or count >= 0 for count in counts)


def document(raw: bytes) -> None:
    """A pool document: refused with a sentence, or equal to itself after writing it again."""
    try:
        found = parse_document(raw)
    except DocumentError:
        return
    assert _same(found, parse_document(encode_document(found)))


def _same(first: PoolDocument, second: PoolDocument) -> bool:
    # Structs with NaN are unequal to themselves; bytes are not.
    return msgspec.json.encode(first, order="sorted") == msgspec.json.encode(second, order="sorted")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "events": events,
    "metrics": metrics,
    "body": body,
    "answer": answer,
    "document": document,
}
