"""One stream of the endpoint-picker protocol: its session, its pick, and whoever waits for them.

Everything that needs no wait happens while a message is taken, without a task: a decision, its
answer, and what an answer that passes tells. Only a request that has to wait for its turn gets one.
"""

import asyncio
import logging
from typing import Protocol

import msgspec
from google.protobuf.message import DecodeError

from routing.core.renaming import renaming
from routing.pool.waiting import EVICTION
from routing.servers import calls, eager, queueing
from routing.servers.attempt import CLIENT_GONE, Ending
from routing.servers.calls import Call
from routing.servers.delivery import answer_headers
from routing.servers.errors import ApiError
from routing.servers.faces import carrying
from routing.servers.faces.ext_proc import reading, writing
from routing.servers.faces.ext_proc.messages_pb2 import ProcessingRequest
from routing.servers.faces.ext_proc.observing import Observation
from routing.servers.faces.ext_proc.session import (
    Choice,
    OrderError,
    Phase,
    Question,
    Session,
    Terms,
)
from routing.servers.faces.ext_proc.writing import Parts
from routing.servers.faces.http2.streams import FAILED_PRECONDITION, INVALID_ARGUMENT, OK
from routing.servers.faces.picks import Pick, Picks
from routing.servers.state import RouterState
from routing.servers.waiting import Evictable

logger = logging.getLogger(__name__)

MOST_HELD_BYTES = 1024 * 1024 * 1024
"""Bodies of all streams together that are being collected."""


class Wire(Protocol):
    """The other end of a stream."""

    def send(self, message: bytes) -> None:
        """Write a message; after the end it does nothing."""

    def end(self, code: int = OK, message: str = "") -> None:
        """Close the stream with a status of gRPC; again, it does nothing."""


class Face:
    """What all streams of a process share."""

    def __init__(
        self,
        picks: Picks,
        *,
        is_testing: bool = False,
        tells_scores: bool = False,
        observes: bool = False,
    ) -> None:
        self.picks = picks
        self.state: RouterState = picks.state
        self.tells_scores = tells_scores
        self.observes = observes
        self.terms = Terms(
            body_bytes=lambda: self.state.directory.body_bytes,
            gate=lambda headers: calls.access_of(self.state, headers),
            is_testing=is_testing,
        )
        self.held_bytes = 0
        self.wrong_orders = 0
        self._said_wrong = False

    def note_wrong(self, why: str) -> None:
        """Count a stream that broke the rules; the first one is logged."""
        self.wrong_orders += 1
        self.state.metrics.ext_proc_wrong_orders.inc()
        if not self._said_wrong:
            self._said_wrong = True
            logger.warning("A gateway broke the order of the endpoint-picker protocol: %s.", why)


class Stream:
    """See the module. `taken` and `closed` are the whole of what a transport calls."""

    def __init__(self, face: Face, wire: Wire) -> None:
        self._face = face
        self._wire = wire
        self._session = Session(face.terms)
        self._observation: Observation | None = None
        self._held_bytes = 0
        self._pick: Pick | None = None
        self._task: asyncio.Task[None] | None = None
        self._evictable: Evictable | None = None

    def taken(self, raw: bytes) -> None:
        """A message came."""
        session = self._session
        try:
            message = ProcessingRequest.FromString(raw)
            if message.observability_mode or self._observation is not None:
                self._observe(message)
                return
            parts = session.take(message)
            self._hold(session.held_bytes)
        except ApiError as error:
            self._refuse(error)
            return
        except (OrderError, DecodeError) as error:
            self._face.note_wrong(str(error))
            self._wire.end(INVALID_ARGUMENT, f"This message cannot come now: {error}.")
            self.closed()
            return
        if self._task is not None and session.phase is not Phase.CHOOSING:
            self._task.cancel()
        self._send(parts)
        question = session.question
        if question is not None:
            session.question = None
            self._task = eager.run(self._decide(question))
        elif session.phase is Phase.DONE:
            self._unlist()

    def _observe(self, message: ProcessingRequest) -> None:
        """Look at a message of a request that others carry; nothing is answered."""
        if not self._face.observes:
            self._wire.end(FAILED_PRECONDITION, "This router does not observe; see --observe.")
            return
        if self._observation is None:
            self._observation = Observation(self._face.state)
        self._observation.take(message)
        self._hold(self._observation.held_bytes)

    def closed(self) -> None:
        """The other end is done or gone; again, it does nothing."""
        if self._observation is not None:
            self._observation.closed()
        if self._task is not None:
            self._task.cancel()
        self._session.closed()
        self._hold(0)
        self._unlist()
        self._pick = None
        self._wire.end()

    # The choice.

    async def _decide(self, question: Question) -> None:
        pick = None
        try:
            call = _within_subset(self._face.picks.read(question.request), question.subset)
            pick = await self._face.picks.open(call)
            self._picked(pick, call, question)
        except ApiError as error:
            self._refuse(error)
        except Exception:
            logger.exception("The choice for %s failed.", question.request.path)
            if pick is not None:
                pick.finish(Ending(outcome="error", status=500, delivered=True))
            self._refuse(ApiError(500, "The router failed."))

    def _picked(self, pick: Pick, call: Call, question: Question) -> None:
        if self._session.phase is not Phase.CHOOSING:
            pick.finish(Ending(outcome="aborted", status=CLIENT_GONE, delivered=True))
            return
        try:
            choice = self._choice(pick, call, question)
        except ApiError as error:
            error.is_counted = True
            pick.finish(Ending(outcome="error", status=error.status, delivered=True))
            raise
        self._pick = pick
        self._send(self._session.choose(choice))
        self._hold(0)
        self._list(pick)

    def _choice(self, pick: Pick, call: Call, question: Question) -> Choice:
        request, endpoint = call.request, pick.endpoints[0]
        lines = carrying.request_lines(pick, call)
        body = call.body if call.body != question.request.body else None
        return Choice(
            pick=pick,
            destination=lines.pop(carrying.DESTINATION).decode(),
            headers=lines,
            body=body,
            answer_headers=writing.named(answer_headers(call, pick.decision)),
            usage_of=endpoint.engine.usage,
            scores=_scores(pick, call) if self._face.tells_scores else None,
            renaming=renaming(request.model, request.asked_model) if request.asked_model else None,
        )

    def _refuse(self, error: ApiError) -> None:
        """Tell the gateway, unless it does not wait for a choice any more."""
        state, session = self._face.state, self._session
        if not error.is_counted:
            state.requests.count(error.status)
        if session.phase not in (Phase.ANSWER, Phase.DONE, Phase.OVER):
            self._send(session.refuse(error, writing.named(calls.id_line(session.headers))))
        self._hold(0)

    # Bookkeeping.

    def _send(self, parts: Parts) -> None:
        for part in parts:
            self._wire.send(part.SerializeToString())
        if self._session.phase is Phase.OVER:
            self._wire.end()

    def _hold(self, size: int) -> None:
        """Count what is kept of a body. Raises ApiError when all streams keep too much together."""
        face = self._face
        face.held_bytes += size - self._held_bytes
        is_more, self._held_bytes = size > self._held_bytes, size
        if is_more and face.held_bytes > MOST_HELD_BYTES:
            raise ApiError(503, "All that the picker may hold is taken.")

    def _list(self, pick: Pick) -> None:
        """Let a sheddable request be evicted, where the pool says so."""
        call = pick.attempt.call
        if call.request.priority < 0 and call.pool.document.admission.evict_sheddable:
            room = queueing.room_of(self._face.state, call)
            self._evictable = Evictable(call.request, self)
            room.running.add(self._evictable)

    def _unlist(self) -> None:
        one, pick, self._evictable = self._evictable, self._pick, None
        if one is not None and pick is not None:
            room = queueing.room_of(self._face.state, pick.attempt.call)
            room.running.discard(one)
            room.stir()

    def cancel(self) -> None:
        """Its place is needed; done soon, as the room is looking at who runs."""
        asyncio.get_running_loop().call_soon(self._evict)

    def _evict(self) -> None:
        pick, session = self._pick, self._session
        if self._evictable is None or pick is None:
            return
        status = 200 if session.is_answering else EVICTION.status
        pick.finish(Ending(outcome="error", status=status, delivered=True))
        self._send(session.evict(ApiError.of(EVICTION)))
        self.closed()


def _within_subset(call: Call, subset: tuple[str, ...] | None) -> Call:
    """The call narrowed to the gateway's subset."""
    if subset is None:
        return call
    origins = {name: endpoint.origin for name, endpoint in call.pool.endpoints.items()}
    call.request = msgspec.structs.replace(call.request, subset=reading.within(origins, subset))
    return call


def _scores(pick: Pick, call: Call) -> dict[str, float]:
    """Address to the cheapest price as a share of its own: 1 for the best, smaller for others."""
    found = pick.decision.candidates
    if found is None or found.terms is None:
        return {}
    ids, total = pick.decision.endpoint_ids, found.terms.total
    best = min((float(total[row]) for row in found.rows), default=0.0)
    return {
        str(call.pool.endpoints[ids[row]].origin): _share(best, float(total[row]))
        for row in found.rows
        if ids[row] in call.pool.endpoints
    }


def _share(best: float, own: float) -> float:
    return 1.0 if own <= best else best / own
