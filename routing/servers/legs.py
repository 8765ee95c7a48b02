"""The prefill leg of a pair, for whoever decodes: the proxy's attempts and the sidecar.

In turn (NIXL) the prefill endpoint's answer is the ticket of the decode leg; at once (SGLang) both
legs get one body and meet.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from routing.engines.base import (
    AnswerError,
    AtOnce,
    Engine,
    InTurn,
    Meeting,
    PrefillAnswer,
    TokenUsage,
)
from routing.servers.failures import ClientAnswerError, LegError
from routing.servers.origin import Origin
from routing.servers.upstream import Collected, Deadlines, UpstreamError, UpstreamPool

logger = logging.getLogger(__name__)

BOOTSTRAP_PORT = 8998
"""SGLang's default for `--disaggregation-bootstrap-port`."""
STARTED_NOTHING = (502, 503, 504)
"""Statuses of an endpoint that did not begin the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillLeg:
    """One prefill endpoint, asked for one prompt."""

    name: str
    """Of the endpoint, in errors."""
    origin: Origin
    engine: Engine
    upstreams: UpstreamPool
    message: Callable[[bytes], bytes]
    """The whole HTTP request around a body."""
    deadlines: Deadlines
    done: Callable[[TokenUsage], None]
    """Told the endpoint's own counts, when the prompt is computed."""


async def compute_prompt(leg: PrefillLeg, legs: InTurn, body: bytes) -> PrefillAnswer:
    """Run the prefill leg of legs in turn and return what the decode leg needs.

    Raises LegError (another endpoint may do better) or ClientAnswerError (none will).
    """
    answer = await _ask(leg, legs.prefill_body(body))
    try:
        result = legs.prefill_answer(answer.body)
    except AnswerError as error:
        raise LegError(leg.name, "kv_transfer", str(error)) from error
    leg.done(result.usage)
    return result


def starts_nothing(failure: LegError) -> bool:
    """The endpoint did not begin the work, so that a ticket is as good as before."""
    if failure.answer:
        return failure.answer.status in STARTED_NOTHING
    return failure.kind == "connect"


def may_try_another(failure: LegError) -> bool:
    """Only what started nothing is asked for a second time elsewhere."""
    if failure.answer:
        return failure.answer.status in STARTED_NOTHING
    return failure.kind in ("connect", "kv_transfer")


def meeting_body(legs: AtOnce, body: bytes, *, host: str, port: int | None) -> bytes:
    """The body for both legs at once: where they meet, under a number drawn for it."""
    meeting = Meeting(
        host=host, port=port or BOOTSTRAP_PORT, draw_room=lambda: secrets.randbits(63)
    )
    return legs.meeting_body(body, meeting)


async def both_legs(
    leg: PrefillLeg,
    decode: Awaitable[None],
    body: bytes,
    *,
    has_begun: Callable[[], bool],
    leftovers: set["asyncio.Future[Collected]"],
) -> None:
    """Run both legs with one body; `decode` answers the client, `has_begun` says since when.

    The prefill leg is never ended before it is done, unless the decode leg failed or the client
    left: it may still be sending, and stays in `leftovers` meanwhile. When it fails first, the
    decode leg would wait in vain and is ended. Raises what the failed leg raised.
    """
    prefill = asyncio.ensure_future(_ask(leg, body))
    decoding = asyncio.ensure_future(decode)
    try:
        await asyncio.wait((prefill, decoding), return_when=asyncio.FIRST_COMPLETED)
        if prefill.done() and not decoding.done():
            _take_prefill(leg, prefill, has_begun)
        await decoding
        _let_end(leftovers, prefill)
    except BaseException:
        await _end(prefill, decoding)
        raise
    finally:
        # A leg keeps its error, whose traceback keeps this frame: a ring.
        del prefill, decoding


def _let_end(
    leftovers: set["asyncio.Future[Collected]"], prefill: "asyncio.Future[Collected]"
) -> None:
    """A leg may outlive its request, for as long as its deadlines let it."""
    if not prefill.done():
        leftovers.add(prefill)
        prefill.add_done_callback(leftovers.discard)
    prefill.add_done_callback(_look_at)


def _take_prefill(
    leg: PrefillLeg, prefill: "asyncio.Future[Collected]", has_begun: Callable[[], bool]
) -> None:
    """Note a prefill leg that ended first. Raises its error while it still matters."""
    try:
        answer = prefill.result()
    except (LegError, ClientAnswerError):
        if not has_begun():
            raise
        return
    finally:
        del prefill  # As above.
    leg.done(leg.engine.usage(_last_usage(answer.body)) or TokenUsage())


def _last_usage(answer: bytes) -> bytes:
    """JSON with the counts: the whole answer, or the last event of a stream that has any."""
    if not answer.startswith(b"data:"):
        return answer
    events = [line[5:] for line in answer.splitlines() if line.startswith(b"data:")]
    return next((event for event in reversed(events) if b'"usage"' in event), b"{}")


def _look_at(prefill: "asyncio.Future[Collected]") -> None:
    """A prefill leg that fails after the answer began harms nobody; it is not left unread."""
    if not prefill.cancelled() and prefill.exception() is not None:
        logger.info("A prefill leg failed after its answer had begun: %s", prefill.exception())


async def _end(*legs: "asyncio.Future[Any]") -> None:
    for leg in legs:
        leg.cancel()
    await asyncio.gather(*legs, return_exceptions=True)


async def _ask(leg: PrefillLeg, body: bytes) -> Collected:
    answer = Collected()
    try:
        await leg.upstreams.run(leg.origin, leg.message(body), answer, leg.deadlines)
    except UpstreamError as error:
        raise LegError(leg.name, error.kind, error.message) from error
    if answer.status >= 500:
        raise LegError(leg.name, "status", f"{leg.name} answered {answer.status}.", answer)
    if answer.status != 200:
        raise ClientAnswerError(answer)
    return answer
