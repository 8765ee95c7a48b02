"""The order of one stream of the endpoint-picker protocol: messages in, messages out, no I/O.

A stream is one HTTP request. Bodies of requests come in one of two modes. FULL_DUPLEX_STREAMED:
they come in pieces, nothing is answered before the last one, and then headers, the body in pieces
and the trailers go back. BUFFERED: headers are answered at once, the body comes whole, and its
answer has the pick. The answer's phases follow where the gateway sends them.

Whoever drives a session asks for a choice when `question` is set and tells it by `choose` or
`refuse`; calls `closed` when the stream has ended, at any phase.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass

import httptools
import msgspec

from routing.core.renaming import RenamedPieces, Renaming
from routing.servers.errors import ApiError
from routing.servers.faces.ext_proc import reading, writing
from routing.servers.faces.ext_proc.messages_pb2 import ProcessingRequest
from routing.servers.faces.ext_proc.reading import Headers
from routing.servers.faces.ext_proc.watching import AnswerWatch, UsageOf, Watched
from routing.servers.faces.ext_proc.writing import Lines, Parts
from routing.servers.held import UNSEEN
from routing.servers.http_parts import UNGATED_BYTES, HttpRequest

NONE, STREAMED, BUFFERED, FULL_DUPLEX = 0, 1, 2, 4
"""Body modes."""
CONFORMANCE = "x-conformance-test-served-endpoint"
_LENGTH = "content-length"
NO_METADATA = b"fail: missing envoy lb metadata"
NO_SERVED = b"fail: missing destination endpoint served metadata"


class OrderError(Exception):
    """A message that the protocol does not allow at this moment; the text says which and when."""


class Phase(enum.Enum):
    """What a session waits for."""

    START = "before the headers"
    BODY = "while the body comes"
    CHOOSING = "while an endpoint is chosen"
    PICKED = "after the pick"
    ANSWER = "while the answer comes"
    DONE = "after the answer"
    OVER = "after it was ended from here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is equal for all sessions of a face."""

    body_bytes: Callable[[], int]
    """Most bytes of a body; asked each time, because documents change it."""
    gate: Callable[[Headers], object]
    """Asked with the headers before a large body is kept, so that strangers fill no memory. Raises
    ApiError."""
    is_testing: bool = False
    """The conformance tests' headers are read and answered."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be decided."""

    request: HttpRequest
    subset: tuple[str, ...] | None
    """Addresses among which the gateway lets choose; `None` is the whole pool."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint was chosen."""

    pick: Watched
    destination: str
    """`ip:port`, or several in order of preference."""
    headers: Lines
    """What else the request is to carry."""
    body: bytes | None
    """Body to send in place of the client's; `None` leaves its bytes."""
    answer_headers: Lines
    """What the client's answer is to carry."""
    usage_of: UsageOf
    """Reads token counts as the chosen engine tells them."""
    scores: dict[str, float] | None = None
    """Of endpoints, where the gateway is to be told."""
    renaming: Renaming | None = None
    """Puts the model's name that the client asked for back into the answer."""


class Session:
    """See the module."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.phase = Phase.START
        self.question: Question | None = None
        """What is to be decided now; whoever takes it sets it to `None`."""
        self.headers: Headers = {}
        """Of the request."""
        self._mode: int | None = None
        self._answer_mode = NONE
        self._subset: tuple[str, ...] | None = None
        self._body: list[bytes] = []
        self._size = self._head_bytes = 0
        self._is_let_in = self._has_body = self._has_trailers = self._has_answer_body = False
        self._choice: Choice | None = None
        self._watch: AnswerWatch | None = None
        self._renamed: RenamedPieces | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes of headers and a body that this session keeps for somebody who has no pick."""
        if self._choice is not None or self.phase is Phase.OVER:
            return 0
        return self._head_bytes + (self._size if self._body else 0)

    @property
    def is_answering(self) -> bool:
        """The client may have the begin of an answer."""
        return self.phase is Phase.ANSWER

    def take(self, message: ProcessingRequest) -> Parts:
        """The answers to a message, in the order in which they are to be sent.

        Raises OrderError for a message that cannot come now, ApiError for a request that is to be
        refused.
        """
        kind = message.WhichOneof("request")
        if self.phase is Phase.OVER:
            # What was under way when the stream was ended from here.
            return []
        if kind is None:
            raise OrderError("a message without a part")
        step: Callable[[ProcessingRequest], Parts] = getattr(self, f"_{kind}")
        return step(message)

    def choose(self, choice: Choice) -> Parts:
        """Answer what the gateway waits for with a pick."""
        self._expect("a choice", Phase.CHOOSING)
        self.phase, self._choice = Phase.PICKED, choice
        lines = {reading.DESTINATION: choice.destination.encode(), **choice.headers}
        if choice.body is not None:
            lines[_LENGTH] = b"%d" % len(choice.body)
        remove = [name for name in stripped(self.headers) if name not in lines]
        pieces, self._body = self._body, []
        if not self._has_body:
            parts = [writing.picked_headers(lines, remove)]
        elif self._mode == FULL_DUPLEX:
            body = b"".join(pieces) if choice.body is None else choice.body
            parts = [writing.picked_headers(lines, remove), *self._body_back(body)]
        else:
            parts = [writing.picked_body(lines, remove, choice.body)]
        writing.destined(parts[0], choice.destination, choice.scores)
        return parts

    def _body_back(self, body: bytes) -> Parts:
        parts = writing.request_chunks(body, is_last=not self._has_trailers)
        return [*parts, writing.request_trailers()] if self._has_trailers else parts

    def refuse(self, error: ApiError, headers: Lines) -> Parts:
        """End the request with an error; nothing more is read of its stream."""
        self.phase, self._body = Phase.OVER, []
        path = self.headers.get(b":path", b"").decode("latin-1")
        return [writing.refused(error, path, headers)]

    def evict(self, error: ApiError) -> Parts:
        """End a running request to free its place: 429, or an error event in a stream of events.

        The pick is its owner's to finish.
        """
        is_begun = self._watch is not None and self._watch.is_stream
        path = self.headers.get(b":path", b"").decode("latin-1")
        if is_begun and self._answer_mode == FULL_DUPLEX:
            self.phase, self._watch = Phase.OVER, None
            return writing.response_chunks(error.event(path), is_last=True)
        self._watch = None
        return self.refuse(error, {})

    def closed(self) -> None:
        """The stream has ended, whoever ended it; again, it does nothing."""
        watch, choice, phase = self._watch, self._choice, self.phase
        self._watch = self._choice = self.question = None
        self._body, self.phase = [], Phase.OVER
        if watch is not None and (self._has_answer_body or self._answer_mode != NONE):
            watch.broke()
        elif watch is not None:
            watch.leave(is_over=self._ends_with_the_answer)
        elif choice is not None and phase is Phase.PICKED:
            if self._ends_with_the_answer:
                choice.pick.finish(UNSEEN)
            else:
                choice.pick.hold()

    @property
    def _ends_with_the_answer(self) -> bool:
        """Envoy keeps the stream of a buffered request until its answer has ended; in full duplex
        it goes when nothing more is to be sent on it (both seen with 1.40)."""
        return self._has_body and self._mode == BUFFERED

    # The request.

    def _request_headers(self, message: ProcessingRequest) -> Parts:
        self._expect("request_headers", Phase.START)
        told = message.request_headers
        self._head_bytes = reading.head_bytes(message)
        self.headers = headers = reading.headers_of(told.headers)
        self._mode = reading.body_mode(message)
        self._answer_mode = message.protocol_config.response_body_mode
        self._subset = reading.subset_of(message)
        if self._terms.is_testing:
            selection = reading.selection_of(headers)
            self._subset = self._subset if selection is None else selection
        if told.end_of_stream:
            return self._ask()
        self._has_body, self.phase = True, Phase.BODY
        if self._mode == FULL_DUPLEX:
            return []
        if self._mode in (None, BUFFERED):
            return [writing.request_headers()]
        raise _wrong_mode()

    def _request_body(self, message: ProcessingRequest) -> Parts:
        self._expect("request_body", Phase.BODY)
        told = message.request_body
        piece = told.body
        self._size += len(piece)
        self._check_size()
        reading.keep(self._body, piece)
        if told.end_of_stream or self._mode != FULL_DUPLEX:
            return self._ask()
        return []

    def _check_size(self) -> None:
        most = self._terms.body_bytes()
        if self._size > most:
            raise ApiError(413, f"The body has more than {most} bytes.")
        if self._size > UNGATED_BYTES and not self._is_let_in:
            self._terms.gate(self.headers)
            self._is_let_in = True

    def _request_trailers(self, message: ProcessingRequest) -> Parts:
        if self._mode != FULL_DUPLEX and self.phase is Phase.PICKED and not self._has_trailers:
            self._has_trailers = True
            return [writing.request_trailers()]
        self._expect("request_trailers", Phase.BODY)
        self._has_trailers = True
        if self._mode != FULL_DUPLEX:
            raise ApiError(400, "The request has trailers and no body.")
        return self._ask()

    def _ask(self) -> Parts:
        self.phase = Phase.CHOOSING
        try:
            request = reading.http_request(self.headers, self._body)
        except (httptools.HttpParserInvalidURLError, UnicodeDecodeError) as error:
            raise ApiError(400, "The path or the method cannot be read.") from error
        self.question = Question(request=request, subset=self._subset)
        return []

    # The answer.

    def _response_headers(self, message: ProcessingRequest) -> Parts:
        if self.phase in (Phase.BODY, Phase.CHOOSING):
            # The gateway answers itself: a time limit, or a filter before this one.
            self.phase, self._body, self.question = Phase.ANSWER, [], None
            return [writing.response_headers({})]
        self._expect("response_headers", Phase.PICKED)
        self.phase, choice, told = Phase.ANSWER, self._choice, message.response_headers
        if choice is None:
            return [writing.response_headers({})]
        headers = reading.headers_of(told.headers)
        served = reading.served_of(message)
        if served is not None:
            choice.pick.served(served)
        self._watch = AnswerWatch(
            choice.pick,
            choice.usage_of,
            status=reading.status_of(headers),
            content_type=headers.get(b"content-type", b""),
        )
        lines = dict(choice.answer_headers)
        if self._terms.is_testing:
            lines[CONFORMANCE] = _conformance(message, served)
        renames = choice.renaming is not None and self._answer_mode != NONE
        if choice.renaming is not None and renames:
            self._renamed = RenamedPieces(choice.renaming)
        if told.end_of_stream:
            self._end()
        # The name that is put back may have another length.
        remove = [_LENGTH] if renames and _LENGTH.encode() in headers else []
        return [writing.response_headers(lines, remove)]

    def _response_body(self, message: ProcessingRequest) -> Parts:
        self._expect("response_body", Phase.ANSWER)
        told, mode, self._has_answer_body = message.response_body, self._answer_mode, True
        data, is_last = told.body, told.end_of_stream
        if self._watch is not None:
            self._watch.take(data, is_timely=mode != BUFFERED)
        changed = None
        if self._renamed is not None:
            changed = self._renamed.piece(data, is_last=is_last or mode == BUFFERED)
        if is_last:
            self._end()
        if mode == FULL_DUPLEX:
            return writing.response_chunks(data if changed is None else changed, is_last=is_last)
        return [writing.response_body(changed)]

    def _response_trailers(self, message: ProcessingRequest) -> Parts:
        self._expect("response_trailers", Phase.ANSWER)
        parts: Parts = []
        if self._renamed is not None and self._answer_mode == FULL_DUPLEX:
            left = self._renamed.piece(b"", is_last=True)
            parts = writing.response_chunks(left, is_last=False) if left else []
        self._end()
        return [*parts, writing.response_trailers()]

    def _end(self) -> None:
        self.phase = Phase.DONE
        watch, self._watch, self._choice = self._watch, None, None
        if watch is not None:
            watch.ended()

    def _expect(self, kind: str, phase: Phase) -> None:
        if self.phase is not phase:
            raise OrderError(f"{kind} {self.phase.value}")


def stripped(headers: Headers) -> list[str]:
    """Names of headers that must not reach an engine: keys, and words for routers."""
    return [
        name.decode("latin-1")
        for name in headers
        if name in _STRIPPED or name.startswith(_STRIPPED_BEGINS)
    ]


_STRIPPED = frozenset(
    (
        # Its holder is known by it here; an engine has no business with it.
        b"authorization",
        b"x-api-key",
        b"prefer",
        b"epp-profile",
        b"x-slo-ttft-ms",
        b"x-slo-tpot-ms",
        b"x-prefiller-host-port",
        b"x-encoder-hosts-ports",
        b"x-data-parallel-host-port",
        b"x-data-parallel-rank",
        b"x-kv-cache-source-host-port",
        reading.TEST_SELECTION,
    )
)
_STRIPPED_BEGINS = (
    b"x-gateway-destination-endpoint",
    b"x-gateway-inference-",
    b"x-gateway-model-name-rewrite",
    b"x-llm-d-",
    b"x-consort-",
)


def _wrong_mode() -> ApiError:
    return ApiError(
        500,
        "The gateway does not send whole bodies to its endpoint picker: set request_body_mode to"
        " FULL_DUPLEX_STREAMED or BUFFERED.",
        code="body-mode",
    )


def _conformance(message: ProcessingRequest, served: str | None) -> bytes:
    if served is not None:
        return served.encode()
    return NO_SERVED if reading.has_load_balancer(message) else NO_METADATA
