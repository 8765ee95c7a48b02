"""A gateway's end of one stream of the endpoint-picker protocol, without a network."""

import json
from typing import Any

from google.protobuf.json_format import MessageToDict

from routing.servers.faces.ext_proc.messages_pb2 import (
    HeaderMap,
    HeaderMutation,
    HeaderValue,
    HttpBody,
    HttpHeaders,
    HttpTrailers,
    ProcessingRequest,
    ProcessingResponse,
    ProtocolConfiguration,
)
from routing.servers.faces.ext_proc.stream import Face, Stream
from tests.routing.servers.scripted import CHAT, SECRET, chat

FULL_DUPLEX, BUFFERED, STREAMED, NONE = 4, 2, 1, 0
DESTINATION = "x-gateway-destination-endpoint"


def header_map(headers: dict[str, str], *, as_text: bool = False) -> HeaderMap:
    """Headers as Envoy sends them; old ones send text."""
    return HeaderMap(
        headers=[
            HeaderValue(key=name, value=value)
            if as_text
            else HeaderValue(key=name, raw_value=value.encode())
            for name, value in headers.items()
        ]
    )


def request_headers(
    *,
    method: str = "POST",
    path: str = CHAT,
    mode: int | None = FULL_DUPLEX,
    answer_mode: int = NONE,
    is_last: bool = False,
    metadata: dict[str, dict[str, Any]] | None = None,
    observes: bool = False,
    secret: str = SECRET,
    as_text: bool = False,
    **headers: str,
) -> ProcessingRequest:
    """The first message of a stream."""
    told = {":method": method, ":path": path, ":authority": "gateway"}
    if secret:
        told["authorization"] = f"Bearer {secret}"
    told |= {name.replace("_", "-"): value for name, value in headers.items()}
    message = ProcessingRequest(
        request_headers=HttpHeaders(
            headers=header_map(told, as_text=as_text), end_of_stream=is_last
        ),
        observability_mode=observes,
    )
    if mode is not None:
        message.protocol_config.CopyFrom(
            ProtocolConfiguration(request_body_mode=mode, response_body_mode=answer_mode)
        )
    return with_metadata(message, metadata)


def request_body(body: bytes, *, is_last: bool = True) -> ProcessingRequest:
    return ProcessingRequest(request_body=HttpBody(body=body, end_of_stream=is_last))


def request_trailers() -> ProcessingRequest:
    return ProcessingRequest(request_trailers=HttpTrailers(trailers=header_map({"t": "1"})))


def response_headers(
    status: int = 200,
    *,
    is_last: bool = False,
    metadata: dict[str, dict[str, Any]] | None = None,
    **headers: str,
) -> ProcessingRequest:
    told = {":status": str(status), "content-type": "application/json"}
    told |= {name.replace("_", "-"): value for name, value in headers.items()}
    message = ProcessingRequest(
        response_headers=HttpHeaders(headers=header_map(told), end_of_stream=is_last)
    )
    return with_metadata(message, metadata)


def response_body(body: bytes, *, is_last: bool = True) -> ProcessingRequest:
    return ProcessingRequest(response_body=HttpBody(body=body, end_of_stream=is_last))


def response_trailers() -> ProcessingRequest:
    return ProcessingRequest(response_trailers=HttpTrailers(trailers=header_map({"t": "1"})))


def with_metadata(
    message: ProcessingRequest, metadata: dict[str, dict[str, Any]] | None
) -> ProcessingRequest:
    for name, fields in (metadata or {}).items():
        message.metadata_context.filter_metadata[name].update(fields)
    return message


class Gateway:
    """Tells messages and keeps what comes back."""

    def __init__(self, face: Face) -> None:
        self.got: list[ProcessingResponse] = []
        self.status: int | None = None
        self.why = ""
        self.stream = Stream(face, self)

    def send(self, message: bytes) -> None:
        assert self.status is None
        self.got.append(ProcessingResponse.FromString(message))

    def end(self, code: int = 0, message: str = "") -> None:
        if self.status is None:
            self.status, self.why = code, message

    def tell(self, *messages: ProcessingRequest) -> list[ProcessingResponse]:
        """Send messages; returns what came back at once."""
        before = len(self.got)
        for message in messages:
            self.stream.taken(message.SerializeToString())
        return self.got[before:]

    def leave(self) -> None:
        """Half-close or reset: the same for the picker."""
        self.stream.closed()


def picked(face: Face, *, body: bytes | None = None, **headers: Any) -> Gateway:
    """A stream whose pick was answered."""
    gateway = Gateway(face)
    body = json.dumps(chat()).encode() if body is None else body
    gateway.tell(request_headers(**headers), request_body(body))
    assert kinds(gateway.got)[-1] in ("request_body", "immediate_response")
    return gateway


def kinds(messages: list[ProcessingResponse]) -> list[str]:
    """What each answers."""
    return [str(message.WhichOneof("response")) for message in messages]


def set_headers(told: HeaderMutation) -> dict[str, str]:
    """Headers that a mutation sets. Values must be bytes: Envoy ignores text."""
    assert not [option for option in told.set_headers if option.header.value]
    return {option.header.key: option.header.raw_value.decode() for option in told.set_headers}


def mutation_of(message: ProcessingResponse) -> HeaderMutation:
    """Of an answer to headers or to a body."""
    part = getattr(message, str(message.WhichOneof("response")))
    found: HeaderMutation = part.response.header_mutation
    return found


def destination(message: ProcessingResponse) -> str:
    """The pick, told twice."""
    metadata = MessageToDict(message.dynamic_metadata)
    told = set_headers(mutation_of(message))[DESTINATION]
    assert metadata["envoy.lb"][DESTINATION] == told
    return told


def streamed(messages: list[ProcessingResponse], part: str = "request_body") -> list[bytes]:
    """Pieces of a body on its way on; only the last may end it."""
    pieces = [
        getattr(message, part).response.body_mutation.streamed_response
        for message in messages
        if message.WhichOneof("response") == part
    ]
    assert not [piece for piece in pieces[:-1] if piece.end_of_stream]
    return [piece.body for piece in pieces]


def ends(messages: list[ProcessingResponse], part: str = "request_body") -> bool:
    """Whether the last piece ends the body."""
    last = [message for message in messages if message.WhichOneof("response") == part][-1]
    return bool(getattr(last, part).response.body_mutation.streamed_response.end_of_stream)
