"""Streams of somebody else's gateway that are only looked at: nothing is answered or changed.

Which endpoint was chosen stands in the request's header, where the gateway asks us after its own
picker, or in what its load balancer noted, which comes with the answer. The choice is priced as if
it were ours, our policies are asked what they would have done, and its record gets what came. Load
and caches are believed from it. Nobody is billed: these requests are no usage of this router.
"""

from typing import Any

import httptools
import msgspec

from routing.core.decision import Decision
from routing.core.document import KeySpec
from routing.core.lease import Lease
from routing.engines.base import TokenUsage
from routing.servers import calls, clock
from routing.servers.attempt import Ending
from routing.servers.calls import Call
from routing.servers.documents import Access
from routing.servers.errors import ApiError
from routing.servers.faces.ext_proc import reading
from routing.servers.faces.ext_proc.messages_pb2 import ProcessingRequest
from routing.servers.faces.ext_proc.watching import AnswerWatch
from routing.servers.http_parts import HttpRequest
from routing.servers.state import RouterState
from routing.servers.upstream import FailureKind

OBSERVED = KeySpec(id="observed", sha256="0" * 64, tenant="observed", project="observed")
"""Whose the requests are: keys of somebody else's gateway say nothing here."""


class Observation:
    """One request of a gateway."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._headers: reading.Headers = {}
        self._body: list[bytes] = []
        self._size = 0
        self._asked_at = 0.0
        """Monotonic time of the last part of the request."""
        self._seen: _Seen | None = None
        self._watch: AnswerWatch | None = None
        self._is_over = False

    @property
    def held_bytes(self) -> int:
        """Bytes of a body that are kept at present."""
        return self._size if self._body else 0

    def take(self, message: ProcessingRequest) -> None:
        """Look at a message, in whatever order they come."""
        kind = message.WhichOneof("request")
        if self._is_over or kind is None:
            return
        if kind == "request_headers":
            self._headers = reading.headers_of(message.request_headers.headers)
            self._asked_at = clock.monotonic()
        elif kind == "request_body":
            self._keep(message.request_body.body)
        elif kind == "response_headers":
            self._answered(message)
        elif kind == "response_body" and self._watch is not None:
            self._watch.take(message.response_body.body, is_timely=True)
        self._end_with(kind, message)

    def closed(self) -> None:
        """The stream has ended; again, it does nothing."""
        watch, self._watch, self._is_over = self._watch, None, True
        self._body.clear()
        if watch is not None:
            watch.broke()

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._state.directory.body_bytes:
            self._count("too-large")
            self.closed()
        else:
            reading.keep(self._body, piece)
            self._asked_at = clock.monotonic()

    def _answered(self, message: ProcessingRequest) -> None:
        """The answer begins: by now it is known who was asked."""
        served = reading.served_of(message)
        named = self._headers.get(reading.DESTINATION.encode(), b"").decode("latin-1")
        self._seen = self._begin(served or named.split(",")[0].strip())
        self._body.clear()
        if self._seen is None:
            self._is_over = True
            return
        headers = reading.headers_of(message.response_headers.headers)
        self._watch = AnswerWatch(
            self._seen,
            self._seen.usage_of,
            status=reading.status_of(headers),
            content_type=headers.get(b"content-type", b""),
        )

    def _begin(self, address: str) -> "_Seen | None":
        try:
            request = reading.http_request(self._headers, self._body)
            call = _call_of(self._state, request)
        except (ApiError, UnicodeDecodeError, httptools.HttpParserInvalidURLError):
            self._count("unreadable")
            return None
        names = [name for name, one in call.pool.endpoints.items() if str(one.origin) == address]
        seen = _Seen.of(self._state, call, names[0]) if names else None
        if seen is not None:
            seen.asked_at = self._asked_at
        self._count("unknown-endpoint" if seen is None else "observed")
        return seen

    def _end_with(self, kind: str, message: ProcessingRequest) -> None:
        part = getattr(message, kind)
        is_last = kind == "response_trailers" or (
            kind in ("response_headers", "response_body") and part.end_of_stream
        )
        watch = self._watch
        if is_last and watch is not None:
            self._watch, self._is_over = None, True
            watch.ended()

    def _count(self, result: str) -> None:
        self._state.metrics.observed_requests.labels(result).inc()


class _Seen:
    """A choice of the gateway that is followed to its end."""

    def __init__(self, state: RouterState, call: Call, decision: Decision, lease: Lease) -> None:
        self._state = state
        self._call = call
        self._decision = decision
        self._lease = lease
        self.asked_at = 0.0
        """Monotonic time at which the whole request had come."""
        self._ttft: float | None = None

    @classmethod
    def of(cls, state: RouterState, call: Call, name: str) -> "_Seen | None":
        """Price the choice of an endpoint; `None` where the pool could not have made it."""
        now, router = clock.monotonic(), call.pool.router
        recorded = call.pool.document.recording
        keep = state.decisions.keep(recorded, tenant_rate=None, is_special=False, now=now)
        decision = router.observing.decision(call.request, destination=name, keep=keep, now=now)
        if decision is None:
            return None
        sha256, unix_now = call.pool.sha256, clock.unix_now()
        state.decisions.offer(decision, attempt=1, now=now, unix_now=unix_now, document_hash=sha256)
        return cls(state, call, decision, router.begin(call.request, decision, now=now))

    def usage_of(self, answer: bytes) -> TokenUsage | None:
        """Token counts as the endpoint's engine tells them."""
        endpoint = self._call.pool.endpoints.get(self._decision.destination or "")
        return None if endpoint is None else endpoint.engine.usage(answer)

    def served(self, address: str) -> None:
        """It was begun with whoever served."""

    def first_token(self) -> None:
        """A stream began: its prompt is computed."""
        now = clock.monotonic()
        self._ttft = now - self.asked_at
        self._call.pool.router.prompt_is_there(self._lease, now=now)

    def tokens(self, count: int) -> None:
        """A stream goes on."""
        self._call.pool.router.tokens(self._lease, count, now=clock.monotonic())

    def failed(self, kind: FailureKind) -> None:
        """Breakers are for our own requests."""

    def hold(self) -> None:
        """Its body is not shown, so its end is not seen."""
        self._call.pool.router.end(self._lease, now=clock.monotonic(), outcome="unseen")

    def finish(self, ending: Ending) -> None:
        """Give back what it held, and tell the decision's record how it went."""
        now, usage = clock.monotonic(), ending.usage or TokenUsage()
        # Speeds would be learned from the time between the head of an answer and its end.
        is_good = ending.outcome == "ok"
        self._call.pool.router.end(self._lease, now=now, outcome="unseen" if is_good else "aborted")
        if self._state.decisions.awaits(self._decision.id):
            told: dict[str, Any] = {
                "outcome": ending.outcome,
                "status": ending.status,
                "attempt": 1,
            }
            told |= {"endpoint": self._decision.destination, "ttft_seconds": self._ttft}
            told |= msgspec.structs.asdict(usage)
            self._state.decisions.ended(self._decision, told, now=now, unix_now=clock.unix_now())


def _call_of(state: RouterState, request: HttpRequest) -> Call:
    """The request as ours, without a key. Raises ApiError."""
    if request.path not in calls.COMPLETION_PATHS or request.method != "POST":
        raise ApiError(404, "Only completions are observed.")
    access = Access(
        grants=tuple((pool, OBSERVED) for _, pool in sorted(state.directory.pools.items()))
    )
    return calls.read_for(access, request, path=request.path, body=request.body)
