"""The answer of one attempt on its way from the engine to the client."""

from collections.abc import Callable

from routing.core.decision import Decision
from routing.core.document import Limits
from routing.core.renaming import Renaming, renaming
from routing.engines.base import TokenUsage
from routing.pool.retries import UNSTREAMED_SECONDS_PER_TOKEN, UNSTREAMED_TOKENS
from routing.servers import attempt as attempts
from routing.servers import clock, limits_headers
from routing.servers.attempt import CLIENT_GONE, Attempt, Ending
from routing.servers.calls import Call
from routing.servers.continuing import Story
from routing.servers.documents import Endpoint
from routing.servers.errors import ApiError
from routing.servers.failures import BrokenStreamError, LegError
from routing.servers.http import Connection
from routing.servers.messages import request_message
from routing.servers.relay import Relay, RelayTerms, with_cached_tokens
from routing.servers.state import RouterState
from routing.servers.upstream import ClientBlockedError, Collected, Deadlines, UpstreamError

Finish = Callable[..., None]
"""Writes the account: attempt, outcome, status, and `usage` where the engine told it."""


class Delivery:
    """See the module. `story` is `None` where a broken stream cannot go on."""

    def __init__(
        self,
        state: RouterState,
        client: Connection,
        attempt: Attempt,
        story: Story | None,
        finish: Finish,
    ) -> None:
        self._state = state
        self._client = client
        self._attempt = attempt
        self._call = attempt.call
        self._story = story
        self._finish = finish
        self._renamed = _renaming(attempt.call)

    async def run(self, endpoint: Endpoint, body: bytes) -> None:
        """Ask the endpoint and answer the client. Raises LegError while a retry is possible."""
        if self._call.request.parsed.stream:
            await self._stream(endpoint, body)
        else:
            await self._collect(endpoint, body)

    def pass_on(self, answer: Collected) -> None:
        """Hand a whole answer to the client. Raises LegError for 5xx: another may do better."""
        attempt, body, usage = self._attempt, answer.body, None
        if answer.status >= 500 and attempt.endpoint:
            name = attempt.endpoint.spec.id
            raise LegError(name, "status", f"{name} answered {answer.status}.", answer)
        if self._story is not None and self._story.is_begun:
            self._end_early(f"The rest of the answer was refused with {answer.status}.")
            return
        if answer.status == 200 and attempt.endpoint:
            usage = attempt.endpoint.engine.usage(body)
            body = self._corrected(body, usage)
            body = self._renamed.answer(body) if self._renamed else body
        self._client.respond(
            answer.status,
            body,
            content_type=answer.headers.get(b"content-type", b"application/json"),
            headers=answer_headers(self._call, attempt.decision),
        )
        outcome = "ok" if answer.status < 400 else "error"
        self._finish(attempt, outcome, answer.status, usage=usage)

    def deadlines(self, *, is_whole: bool | None = None) -> Deadlines:
        """Seconds for each step; a whole answer comes with its last token.

        After a prompt was computed elsewhere its transfer has a time of its own.
        """
        pool, parsed = self._call.pool.document, self._call.request.parsed
        is_whole = not parsed.stream if is_whole is None else is_whole
        has_prompt = self._attempt.prefill_usage is not None
        return deadlines(
            pool.limits,
            whole_tokens=(parsed.max_tokens or UNSTREAMED_TOKENS) if is_whole else 0,
            transfer=pool.disaggregation.transfer_timeout_seconds if has_prompt else None,
        )

    async def _collect(self, endpoint: Endpoint, body: bytes) -> None:
        answer = Collected()
        await self._exchange(endpoint, body, answer)
        self.pass_on(answer)

    async def _exchange(self, endpoint: Endpoint, body: bytes, answer: Collected) -> None:
        message = request_message(self._call, endpoint, body)
        try:
            await self._state.upstreams.run(endpoint.origin, message, answer, self.deadlines())
        except ClientBlockedError:
            raise
        except UpstreamError as error:
            raise LegError(endpoint.spec.id, error.kind, error.message) from error

    async def _stream(self, endpoint: Endpoint, body: bytes) -> None:
        attempt, relay = self._attempt, self._relay(endpoint)
        where = (attempt.decision.pool, endpoint.spec.id)
        self._state.streams.setdefault(where, set()).add(relay)
        try:
            await self._exchange(endpoint, body, relay)
        except ClientBlockedError:
            attempt.events = relay.events
            self._client.abort()
            self._finish(attempt, "aborted", CLIENT_GONE, usage=relay.usage())
            return
        except LegError as failure:
            attempt.events = relay.events
            if not relay.streamed:
                raise
            self._broken(relay, failure)
            return
        finally:
            self._state.streams[where].discard(relay)
            if not self._state.streams[where]:
                del self._state.streams[where]
            attempt.events = relay.events
        if not relay.streamed:
            self.pass_on(relay)
            return
        relay.finish()
        self._finish(attempt, "error" if relay.has_failed else "ok", 200, usage=relay.usage())

    def _relay(self, endpoint: Endpoint) -> Relay:
        attempt, story = self._attempt, self._story
        router, lease = self._call.pool.router, attempt.lease

        def on_first() -> None:
            attempts.first_token(attempt)
            if story is not None and story.pending is not None:
                self._write_off(story)

        def on_tokens(count: int) -> None:
            if lease:
                router.tokens(lease, count, now=clock.monotonic())

        terms = RelayTerms(
            answer_headers=answer_headers(self._call, attempt.decision),
            hide_usage=not self._call.request.parsed.include_usage,
            cached_tokens=self._cached_at_prefill,
            on_first=on_first,
            on_tokens=on_tokens,
            told=None if story is None else story.told,
            renamed=self._renamed,
            is_open=story is not None and story.is_begun,
        )
        return Relay(self._client, endpoint.engine, terms)

    def _write_off(self, story: Story) -> None:
        """Another engine goes on: what the broken one computed is waste."""
        pending, story.pending = story.pending, None
        if pending is not None:
            usage = pending.broken_usage
            waste = Ending(outcome="error", status=200, delivered=False, usage=usage)
            attempts.finish(self._state, pending, waste)

    def _cached_at_prefill(self) -> int | None:
        prefill = self._attempt.prefill_usage
        return prefill.cached_tokens if prefill else None

    def _broken(self, relay: Relay, failure: LegError) -> None:
        """After the first byte: go on elsewhere, or end the stream honestly.

        Raises BrokenStreamError when another endpoint can go on.
        """
        attempt, story, usage = self._attempt, self._story, relay.usage()
        rest = None if story is None else story.broke(attempt)
        if rest is not None:
            attempt.broken_usage = usage
            raise BrokenStreamError(
                failure.endpoint_id, failure.kind, failure.message, rest
            ) from failure
        attempts.blame(self._state, attempt, failure.kind, failure.endpoint_id)
        closing = None if story is None else story.closing()
        if closing is not None:
            self._client.send(closing)
            self._client.close_stream()
            self._finish(attempt, "ok", 200, usage=usage)
            return
        relay.fail(interrupted(failure.message, self._call.request.path))
        self._finish(attempt, "error", 200, usage=usage)

    def _end_early(self, why: str) -> None:
        self._client.send(interrupted(why, self._call.request.path))
        self._client.close_stream()
        self._finish(self._attempt, "error", 200)

    def _corrected(self, body: bytes, usage: TokenUsage | None) -> bytes:
        cached = self._cached_at_prefill()
        if cached is None or not usage or usage.cached_tokens is None:
            return body
        return with_cached_tokens(body, cached)


def _renaming(call: Call) -> Renaming | None:
    """What puts the name that was asked for back into answers; `None` if it was not rewritten."""
    request = call.request
    return renaming(request.model, request.asked_model) if request.asked_model else None


def deadlines(limits: Limits, *, whole_tokens: int, transfer: float | None) -> Deadlines:
    """Seconds for each step of an exchange.

    `whole_tokens` is the length of an answer that comes at once, 0 for a stream; `transfer` the
    time in which a prompt that was computed elsewhere must be fetched.
    """
    first = limits.first_token_timeout_seconds
    if transfer is not None:
        first = min(first, transfer)
    return Deadlines(
        connect=limits.connect_timeout_seconds,
        first_byte=first + whole_tokens * UNSTREAMED_SECONDS_PER_TOKEN,
        stall=limits.stall_timeout_seconds,
    )


def interrupted(why: str, path: str) -> bytes:
    """The event that ends a stream which nobody can go on with."""
    message = f"The stream was interrupted: {why}"
    return ApiError(502, message, code="stream-interrupted").event(path)


def answer_headers(call: Call, decision: Decision) -> bytes:
    """Header lines: names of request and decision, where it is made, what may be sent yet."""
    return b"x-request-id: %b\r\nx-consort-decision-id: %b\r\n%b%b" % (
        decision.request_id.encode(),
        decision.id.encode(),
        limits_headers.place(call, decision),
        limits_headers.lines(call),
    )
