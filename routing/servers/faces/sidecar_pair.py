"""One request of a sidecar: its prefill leg, if it has one, and its decode leg."""

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial

import msgspec

from routing.core.document import Limits
from routing.core.openai import MOST_OUTPUT_TOKENS
from routing.engines.base import Engine, TokenUsage, batch_of
from routing.pool.retries import PREFILL_FAILURES, UNSTREAMED_TOKENS
from routing.servers import calls, legs
from routing.servers.delivery import deadlines, interrupted
from routing.servers.errors import ApiError
from routing.servers.faces.sidecar_messages import (
    answer_lines,
    request_lines,
    request_message,
    without_rank,
)
from routing.servers.failures import LegError
from routing.servers.forwarding import COMPUTED_LOCALLY
from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from routing.servers.legs import PrefillLeg
from routing.servers.origin import Origin
from routing.servers.relay import Relay, RelayTerms, with_cached_tokens
from routing.servers.upstream import (
    ClientBlockedError,
    Collected,
    Deadlines,
    UpstreamError,
    UpstreamPool,
)

logger = logging.getLogger(__name__)

DECODE = "the decode engine"
DEGRADED_LINE = b"x-consort-degraded: %b\r\n" % COMPUTED_LOCALLY.encode()

Prefiller = tuple[Origin, int]
"""Where a prompt may be computed, and the port where SGLang's legs meet there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """What all requests of a sidecar share."""

    engine: Origin
    kind: Engine
    upstreams: UpstreamPool
    limits: Limits
    transfer_seconds: float
    local_prefill_bytes: int | None
    leftovers: set["asyncio.Future[Collected]"] = field(default_factory=set)
    """Prefill legs that still send KV although their request is answered."""

    def pass_on(
        self,
        answer: Collected,
        client: Connection,
        *,
        body: bytes | None = None,
        lines: bytes = b"",
    ) -> None:
        """Hand a whole answer of an engine to the client, with another body if one is given."""
        client.respond(
            answer.status,
            answer.body if body is None else body,
            content_type=answer.headers.get(b"content-type", b"application/json"),
            headers=answer_lines(answer.headers) + lines,
        )


class _Shape(msgspec.Struct):
    """What says how many answers there are, and how long they may take."""

    stream: bool | None = None
    n: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_output_tokens: int | None = None


_SHAPE = msgspec.json.Decoder(_Shape)


class _Answer(Relay):
    """Hands the engine's own headers on."""

    def header_lines(self) -> bytes:
        return super().header_lines() + answer_lines(self.headers)


class Pair:
    """One request, see the module."""

    def __init__(self, local: Local, request: HttpRequest, client: Connection) -> None:
        self._local = local
        self._request = request
        self._client = client
        self._engine_id = calls.ids_of(request)[1]
        self._at_prefill: TokenUsage | None = None
        self._has_begun = False
        self._more_lines = b""
        self._shape = _shape(request.body)

    async def run(self, prefillers: list[Prefiller]) -> None:
        """Answer the client. Raises ApiError, or ClientAnswerError with an engine's refusal."""
        failure: LegError | None = None
        for prefiller in prefillers[:PREFILL_FAILURES] if self._is_one_sequence() else []:
            try:
                await self._both(prefiller)
            except LegError as error:
                if self._has_begun or error.endpoint_id == DECODE:
                    raise _no_answer(error) from error
                logger.warning("A prefill leg failed: %s", error.message)
                failure = error
                if not legs.may_try_another(error):
                    break
            else:
                return
        if failure is not None:
            self._check_local(failure)
            self._more_lines = DEGRADED_LINE
        try:
            await self._decode(self._request.body)
        except LegError as error:
            raise _no_answer(error) from error

    def _is_one_sequence(self) -> bool:
        """What an engine hands over is one prompt for one answer.

        Pickers of ours do not name a prefill endpoint for others. What cannot be read is the
        engine's to refuse.
        """
        shape = self._shape
        return (
            shape is not None and shape.n in (None, 1) and batch_of(self._request.body) in (None, 1)
        )

    def _check_local(self, failure: LegError) -> None:
        """Never compute a prompt in the wrong place silently when it is long. Raises ApiError."""
        most, size = self._local.local_prefill_bytes, len(self._request.body)
        if most is None or size <= most:
            return
        message = (
            f"Prefill endpoints failed ({failure.message}), and {size} bytes are more than the"
            f" {most} whose prompt may be computed by the decode engine instead."
        )
        raise ApiError(503, message, code="prefill-unavailable", retry_after_seconds=1.0)

    async def _both(self, prefiller: Prefiller) -> None:
        """Both legs, in turn or at once as the engine does it. Raises LegError."""
        origin, port = prefiller
        kind, body = self._local.kind, self._request.body
        leg = self._leg(origin)
        if kind.in_turn is not None:
            ticket = await legs.compute_prompt(leg, kind.in_turn, body)
            await self._decode(kind.in_turn.decode_body(body, ticket.kv_transfer_params))
        elif kind.at_once is not None:
            body = legs.meeting_body(kind.at_once, body, host=origin.host, port=port)
            await legs.both_legs(
                leg,
                self._decode(body),
                body,
                has_begun=lambda: self._has_begun,
                leftovers=self._local.leftovers,
            )

    def _leg(self, origin: Origin) -> PrefillLeg:
        lines = request_lines(without_rank(self._request.headers), self._engine_id)
        return PrefillLeg(
            name=str(origin),
            origin=origin,
            engine=self._local.kind,
            upstreams=self._local.upstreams,
            message=partial(request_message, self._request, origin, lines),
            deadlines=self._deadlines(whole_tokens=0),
            done=self._prompt_is_there,
        )

    def _prompt_is_there(self, usage: TokenUsage) -> None:
        self._at_prefill = usage

    async def _decode(self, body: bytes) -> None:
        """Ask the engine and answer the client. Raises LegError while nothing was sent."""
        local, answer = self._local, self._relay()
        lines = request_lines(self._request.headers, self._engine_id)
        message = request_message(self._request, local.engine, lines, body)
        limits = self._deadlines(whole_tokens=_whole_tokens(self._shape))
        try:
            await local.upstreams.run(local.engine, message, answer, limits)
        except ClientBlockedError:
            self._client.abort()
        except UpstreamError as error:
            if not answer.streamed:
                raise LegError(DECODE, error.kind, error.message) from error
            answer.fail(interrupted(error.message, self._request.path))
        else:
            self._finish(answer)

    def _finish(self, answer: "_Answer") -> None:
        if answer.streamed:
            answer.finish()
            return
        cached = self._cached_at_prefill()
        body = None
        if cached is not None and answer.status == 200:
            body = with_cached_tokens(answer.body, cached)
        self._local.pass_on(answer, self._client, body=body, lines=self._more_lines)

    def _relay(self) -> _Answer:
        terms = RelayTerms(
            answer_headers=self._more_lines,
            hide_usage=False,
            cached_tokens=self._cached_at_prefill,
            on_first=self._begin,
            on_tokens=_nothing,
        )
        return _Answer(self._client, self._local.kind, terms)

    def _begin(self) -> None:
        self._has_begun = True

    def _cached_at_prefill(self) -> int | None:
        """A decode engine counts what it pulled as cached; the prefill engine knows the hit."""
        return self._at_prefill.cached_tokens if self._at_prefill else None

    def _deadlines(self, *, whole_tokens: int) -> Deadlines:
        has_prompt = self._at_prefill is not None
        return deadlines(
            self._local.limits,
            whole_tokens=whole_tokens,
            transfer=self._local.transfer_seconds if has_prompt else None,
        )


def _nothing(_: int) -> None:
    """A sidecar counts no tokens."""


def _shape(body: bytes) -> _Shape | None:
    """`None` for what cannot be read: the engine says at once what is wrong with it."""
    try:
        return _SHAPE.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _whole_tokens(shape: _Shape | None) -> int:
    """Tokens of an answer that comes at once, 0 for a stream."""
    if shape is None or shape.stream:
        return 0
    limit = shape.max_completion_tokens or shape.max_output_tokens or shape.max_tokens
    return min(max(limit or UNSTREAMED_TOKENS, 1), MOST_OUTPUT_TOKENS)


def _no_answer(failure: LegError) -> ApiError:
    is_late = failure.kind in ("timeout", "stall")
    return ApiError(
        504 if is_late else 503,
        f"The decode engine did not answer: {failure.message}",
        code="engine-too-slow" if is_late else "no-capacity",
        retry_after_seconds=1.0,
    )
