"""The two legs of an attempt at a prefill/decode pair, see `legs`."""

from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial

from routing.engines.base import AtOnce, InTurn, TokenUsage
from routing.pool.retries import TICKET_MARGIN_SECONDS
from routing.producers.leases import KV_HOLD_SECONDS
from routing.servers import attempt as attempts
from routing.servers import clock, legs
from routing.servers.attempt import Attempt
from routing.servers.documents import Endpoint
from routing.servers.legs import PrefillLeg
from routing.servers.messages import request_message
from routing.servers.state import RouterState
from routing.servers.upstream import Deadlines


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """What a decode endpoint needs to fetch a prompt that was computed elsewhere."""

    prefill: Endpoint
    params: bytes
    """JSON exactly as the prefill endpoint gave it."""
    usage: TokenUsage
    valid_until: float
    """Monotonic time until which the prefill endpoint keeps the blocks."""


async def compute_prompt(
    state: RouterState, attempt: Attempt, in_turn: InTurn, deadlines: Deadlines
) -> Ticket:
    """Run the prefill leg of legs in turn and return the ticket for the decode leg.

    Raises LegError (another endpoint may do better) or ClientAnswerError (none will).
    """
    result = await legs.compute_prompt(_leg(state, attempt, deadlines), in_turn, attempt.call.body)
    return Ticket(
        prefill=_prefill_of(attempt),
        params=result.kv_transfer_params,
        usage=result.usage,
        valid_until=clock.monotonic() + KV_HOLD_SECONDS - TICKET_MARGIN_SECONDS,
    )


def meeting_body(attempt: Attempt, at_once: AtOnce, body: bytes) -> bytes:
    """The body for both legs at once."""
    endpoint = _prefill_of(attempt)
    port = endpoint.spec.bootstrap_port
    return legs.meeting_body(at_once, body, host=endpoint.origin.host, port=port)


async def both_legs(
    state: RouterState,
    attempt: Attempt,
    decode: Awaitable[None],
    body: bytes,
    deadlines: Deadlines,
) -> None:
    """Run both legs with one body; `decode` answers the client. Raises what the failed leg did."""
    await legs.both_legs(
        _leg(state, attempt, deadlines),
        decode,
        body,
        has_begun=lambda: attempt.first_at is not None,
        leftovers=state.leftovers,
    )


def _leg(state: RouterState, attempt: Attempt, deadlines: Deadlines) -> PrefillLeg:
    endpoint = _prefill_of(attempt)
    return PrefillLeg(
        name=endpoint.spec.id,
        origin=endpoint.origin,
        engine=endpoint.engine,
        upstreams=state.upstreams,
        message=partial(request_message, attempt.call, endpoint),
        deadlines=deadlines,
        done=partial(_done, attempt),
    )


def _done(attempt: Attempt, usage: TokenUsage) -> None:
    if attempt.first_at is None:
        attempts.prefill_done(attempt, usage)
    else:
        attempt.prefill_usage = usage


def _prefill_of(attempt: Attempt) -> Endpoint:
    if attempt.prefill is None:
        raise ValueError("The attempt has no prefill endpoint.")
    return attempt.prefill
