"""Reservations of the decision API: others' proxies send the request, this router keeps the books.

`POST /v1/reserve {path, body, ttl_seconds}` decides like a request of the key and opens its lease.
`POST /v1/refresh {reservation, first_token, tokens}` says that it goes on. `POST /v1/release
{reservation, outcome, usage, failure, failed_endpoint}` ends it: speeds and caches are learned and
the usage is written down as the proxy reports it, so only keys that `may_reserve` may do this.

A proxy that is lost leaves reservations behind; those that were not refreshed end as aborted by the
rule of `routing.servers.held`.
"""

import re
import secrets
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from routing.engines.base import TokenUsage
from routing.explain.own import own_answer
from routing.servers import attempt as attempts
from routing.servers import calls, clock
from routing.servers import held as held_attempts
from routing.servers.attempt import CLIENT_GONE, Ending
from routing.servers.documents import Endpoint
from routing.servers.errors import ApiError
from routing.servers.held import LOST, Held, HeldAttempts
from routing.servers.http_parts import HttpRequest
from routing.servers.state import RouterState
from routing.servers.upstream import FailureKind

PATHS = ("/v1/reserve", "/v1/refresh", "/v1/release")
MOST = 8192
"""Open reservations of a process; a forgetful proxy must not fill its memory."""

_Ttl = Annotated[float, msgspec.Meta(ge=1.0, le=300.0)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_STATUS = {"ok": 200, "error": 502, "aborted": CLIENT_GONE}


class _Reserve(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    body: msgspec.Raw
    ttl_seconds: _Ttl = 30.0


class _Refresh(msgspec.Struct, forbid_unknown_fields=True):
    reservation: str
    first_token: bool = False
    tokens: _Count = 0


class _Usage(msgspec.Struct, forbid_unknown_fields=True):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    cached_tokens: _Count | None = None


class _Release(msgspec.Struct, forbid_unknown_fields=True):
    reservation: str
    outcome: Literal["ok", "error", "aborted"]
    usage: _Usage | None = None
    failure: FailureKind | None = None
    failed_endpoint: str | None = None


T = TypeVar("T")


class Reservations:
    """Open reservations of one process."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._held = HeldAttempts(state, sweep_seconds=1.0)

    def __len__(self) -> int:
        return len(self._held)

    async def answer(self, request: HttpRequest) -> tuple[int, bytes]:
        """Status and body for a request of one of `PATHS`. Raises ApiError.

        What another process of this router reserved is settled there.
        """
        calls.access_of(self._state, request.headers)
        if request.path == "/v1/reserve":
            return 200, await self._reserve(request)
        mark, elsewhere = _mark(request), self._state.elsewhere
        if elsewhere is not None and mark not in (None, self._state.mark):
            return await elsewhere(mark, request)
        return 200, self.settle(request)

    def settle(self, request: HttpRequest) -> bytes:
        """Refresh or release a reservation of this process. Raises ApiError."""
        if request.path == "/v1/refresh":
            return self._refresh(request)
        return self._release(request)

    async def _reserve(self, request: HttpRequest) -> bytes:
        asked = _read(request, _Reserve)
        if asked.path not in calls.COMPLETION_PATHS:
            allowed = ", ".join(calls.COMPLETION_PATHS)
            raise ApiError(400, f"path must be one of {allowed}.", param="path")
        call = calls.read_call(self._state, request, path=asked.path, body=bytes(asked.body))
        if not call.key.may_reserve:
            raise ApiError(403, "This key may not take reservations.", code="may-not-reserve")
        if len(self._held) >= MOST:
            message = f"{MOST} reservations are open; release some."
            raise ApiError(429, message, code="too-many-reservations", retry_after_seconds=1.0)
        attempt = await held_attempts.begin(self._state, call)
        name = f"res{self._state.mark}-{secrets.token_hex(12)}"
        held = Held(
            attempt=attempt,
            key_id=call.key.id,
            quiet=asked.ttl_seconds,
            ttl=asked.ttl_seconds,
            when_silent=LOST,
            refreshed_at=clock.monotonic(),
        )
        self._held.hold(name, held)
        return msgspec.json.encode(
            {
                "reservation": name,
                "destination": _address(attempt.endpoint),
                "prefill": _address(attempt.prefill),
                "expires_in_seconds": asked.ttl_seconds,
                "decision": own_answer(attempt.decision),
            }
        )

    def _refresh(self, request: HttpRequest) -> bytes:
        asked = _read(request, _Refresh)
        held = self._find(asked.reservation, request)
        held.refreshed_at = clock.monotonic()
        if asked.first_token and held.attempt.first_at is None:
            attempts.first_token(held.attempt)
        if asked.tokens and held.attempt.lease:
            router = held.attempt.call.pool.router
            router.tokens(held.attempt.lease, asked.tokens, now=clock.monotonic())
        return msgspec.json.encode({"expires_in_seconds": held.ttl})

    def _release(self, request: HttpRequest) -> bytes:
        asked = _read(request, _Release)
        attempt = self._find(asked.reservation, request).attempt
        if asked.failure is not None:
            ends = [one.spec.id for one in (attempt.endpoint, attempt.prefill) if one is not None]
            failed = asked.failed_endpoint or ends[0]
            if failed not in ends:
                message = f"The reservation is for {' and '.join(ends)} only."
                raise ApiError(400, message, param="failed_endpoint")
            attempts.blame(self._state, attempt, asked.failure, failed)
        usage = None
        if asked.usage is not None:
            usage = TokenUsage(**msgspec.structs.asdict(asked.usage))
        ending = Ending(
            outcome=asked.outcome, status=_STATUS[asked.outcome], delivered=True, usage=usage
        )
        self._held.end(asked.reservation, ending)
        return msgspec.json.encode({"released": asked.reservation})

    def _find(self, name: str, request: HttpRequest) -> Held:
        """A reservation of the caller's own key."""
        held = self._held.get(name)
        access = calls.access_of(self._state, request.headers)
        own = {key.id for _, key in access.grants}
        if held is None or held.key_id not in own:
            message = f"There is no reservation '{name[:80]}'; it may have expired."
            raise ApiError(404, message, code="no-reservation", param="reservation")
        return held


class _Named(msgspec.Struct):
    reservation: str


def _mark(request: HttpRequest) -> str | None:
    """The mark of the process that made the reservation; `None` if that cannot be read."""
    try:
        name = msgspec.json.decode(request.body, type=_Named).reservation
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    found = re.match(r"res(\d{1,2})-", name)
    return found[1] if found else None


def _read(request: HttpRequest, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(request.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, f"The body of {request.path} cannot be read: {error}.") from error


def _address(endpoint: Endpoint | None) -> dict[str, Any] | None:
    if endpoint is None:
        return None
    spec = endpoint.spec
    return {"id": spec.id, "url": spec.url, "data_parallel_rank": spec.data_parallel_rank}
