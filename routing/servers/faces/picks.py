"""Decisions for requests that somebody else's proxy carries, the same as the embedded proxy's.

A face reads the call, opens a `Pick` and tells what it sees of the answer. A face that sees nothing
of it holds the pick, and its end is concluded from the engine's counters (`routing.servers.held`).
"""

import ipaddress
import math
from functools import lru_cache

from routing.core.decision import Decision
from routing.pool import handover
from routing.servers import attempt as attempts
from routing.servers import calls, clock, held, passing, proxy, queueing
from routing.servers.attempt import Attempt, Ending
from routing.servers.calls import COMPLETION_PATHS, Call
from routing.servers.documents import Endpoint
from routing.servers.errors import ApiError
from routing.servers.held import UNSEEN, Held, HeldAttempts
from routing.servers.http_parts import HttpRequest
from routing.servers.origin import Origin
from routing.servers.state import RouterState
from routing.servers.upstream import FailureKind

MOST_HELD = 16_384
"""Held picks of a process; beyond, the end of the oldest is concluded early."""
SWEEP_SECONDS = QUIET_SECONDS = 0.25
"""Engines are asked for their counts about as often, and nothing else is heard of a held pick."""
LEAST_SECONDS, MOST_SECONDS, USUAL_SECONDS = 1.0, 300.0, 30.0
"""Bounds of the time that a request is expected to take, and the time where nobody predicts one."""


class Picks:
    """All picks of one process."""

    def __init__(self, state: RouterState) -> None:
        self.state = state
        self._held = HeldAttempts(state, sweep_seconds=SWEEP_SECONDS)
        self._count = 0

    def __len__(self) -> int:
        """Picks that are held."""
        return len(self._held)

    def read(self, request: HttpRequest) -> Call:
        """Authenticate, find the pool and parse. Raises ApiError.

        The list of models is any engine's; other paths without a prompt need the pool's consent.
        """
        path = request.path
        if path in COMPLETION_PATHS:
            if request.method != "POST":
                raise ApiError(405, f"{path} takes POST only, not {request.method}.")
            return calls.read_call(self.state, request, path=path, body=request.body)
        if path == "/v1/models" or path.startswith("/v1/models/"):
            return passing.read_models_call(self.state, request)
        return passing.read_call(self.state, request)

    async def open(self, call: Call) -> "Pick":
        """Wait for a turn and choose. Raises ApiError, which is accounted for already.

        Whoever opened a pick must `finish` or `hold` it.
        """
        pool = call.pool
        most = pool.document.limits.concurrent_requests
        if pool.running >= most:
            queueing.refuse(self.state, call, proxy.busy(most))
        pool.running += 1
        try:
            attempt = await held.begin(self.state, call)
        except BaseException:
            pool.running -= 1
            raise
        return Pick(self, attempt)

    def keep(self, attempt: Attempt) -> None:
        """Hold the attempt of a pick until its end is concluded."""
        if len(self._held) >= MOST_HELD:
            self._held.end_oldest()
        if attempt.lease:
            attempt.call.pool.router.unseen.begin(attempt.lease)
        self._count += 1
        kept = Held(
            attempt=attempt,
            key_id=attempt.call.key.id,
            quiet=QUIET_SECONDS,
            ttl=expected_seconds(attempt.decision),
            when_silent=UNSEEN,
            refreshed_at=clock.monotonic(),
        )
        self._held.hold(str(self._count), kept)


class Pick:
    """One open decision with a destination."""

    def __init__(self, picks: Picks, attempt: Attempt) -> None:
        self._picks = picks
        self.attempt = attempt
        self._is_open = True

    @property
    def decision(self) -> Decision:
        """What was decided; after `served`, what was carried out."""
        return self.attempt.decision

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The destination, then fallbacks in order of preference.

        Ranks of one address are told apart by one header for all of the list, so a fallback of
        another rank is no fallback.
        """
        first, known = self.attempt.endpoint, self.attempt.call.pool.endpoints
        if first is None:
            return ()
        others = (known[name] for name in self.decision.fallbacks if name in known)
        rank = first.spec.data_parallel_rank
        return (first, *(one for one in others if one.spec.data_parallel_rank == rank))

    def served(self, address: str) -> None:
        """`ip:port` that answered: the lease and the belief in its cache go there.

        An address that no endpoint of the pool has, and the destination's own, change nothing.
        """
        attempt, pool = self.attempt, self.attempt.call.pool
        if attempt.endpoint is None or str(attempt.endpoint.origin) == address:
            return
        for name, endpoint in pool.endpoints.items():
            if str(endpoint.origin) == address:
                self._move(name, endpoint)
                return

    def _move(self, name: str, endpoint: Endpoint) -> None:
        attempt, router, now = self.attempt, self.attempt.call.pool.router, clock.monotonic()
        if not self._is_open or attempt.lease is None:
            return
        router.end(attempt.lease, now=now, outcome="aborted")
        decision = handover.served_by(attempt.decision, name)
        attempt.decision, attempt.endpoint, attempt.prefill = decision, endpoint, None
        attempt.lease = router.begin(attempt.call.request, decision, now=now)

    def first_token(self) -> None:
        """The first token of a stream passed; again, it does nothing."""
        if self._is_open and self.attempt.first_at is None:
            attempts.first_token(self.attempt)

    def tokens(self, count: int) -> None:
        """`count` more events of a stream passed, about a token each."""
        self.attempt.events += count
        if self._is_open and self.attempt.lease and count:
            router = self.attempt.call.pool.router
            router.tokens(self.attempt.lease, count, now=clock.monotonic())

    def failed(self, kind: FailureKind) -> None:
        """The endpoint failed this request; its breaker is told."""
        if self.attempt.endpoint is not None:
            attempts.blame(self._picks.state, self.attempt, kind, self.attempt.endpoint.spec.id)

    def finish(self, ending: Ending) -> None:
        """The end was seen; again, or after `hold`, it does nothing."""
        if self._leave():
            attempts.finish(self._picks.state, self.attempt, ending)
            queueing.leave(self.attempt.call)

    def hold(self) -> None:
        """Nothing more will be seen."""
        if self._leave():
            self._picks.keep(self.attempt)

    def _leave(self) -> bool:
        """The request is not inside the router any more; False when it was not before."""
        if not self._is_open:
            return False
        self._is_open = False
        self.attempt.call.pool.running -= 1
        return True


def expected_seconds(decision: Decision) -> float:
    """How long a request will probably take, within bounds."""
    predicted = decision.predicted
    seconds = predicted.ttft_seconds + predicted.output_tokens * predicted.tpot_seconds
    if not math.isfinite(seconds):
        return USUAL_SECONDS
    return min(max(seconds, LEAST_SECONDS), MOST_SECONDS)


def addresses(endpoints: tuple[Endpoint, ...]) -> str:
    """`ip:port,ip:port` for a gateway. Raises ApiError for a host name, which gateways ignore."""
    return _joined(tuple([one.origin for one in endpoints]))


@lru_cache(maxsize=4096)
def _joined(origins: tuple[Origin, ...]) -> str:
    for origin in origins:
        if not _is_numeric(origin.host):
            raise ApiError(
                500,
                f"An endpoint of the pool is at {origin.host}, and gateways go to IP addresses"
                " only. Write its IP address into the pool document.",
                code="address-not-numeric",
            )
    return ",".join([str(origin) for origin in origins])


def _is_numeric(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
