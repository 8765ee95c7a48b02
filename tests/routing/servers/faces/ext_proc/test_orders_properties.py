"""Whatever a gateway sends, in whatever order: no crash, no leak, no answer out of phase."""

import json

import hypothesis.strategies as st
from hypothesis import given, settings

from routing.servers.faces.ext_proc.messages_pb2 import ProcessingRequest
from routing.servers.faces.ext_proc.stream import Face
from tests.routing.servers.faces.ext_proc.gateway import (
    Gateway,
    kinds,
    request_body,
    request_headers,
    request_trailers,
    response_body,
    response_headers,
    response_trailers,
    streamed,
)
from tests.routing.servers.scripted import Stage, chat, event

BODY = json.dumps(chat(stream=True)).encode()
MODES = st.sampled_from([None, 0, 1, 2, 3, 4, 4, 5])
HEADERS = st.builds(
    request_headers,
    mode=MODES,
    answer_mode=st.sampled_from([0, 1, 2, 4]),
    is_last=st.booleans(),
    method=st.sampled_from(["GET", "POST", ""]),
    path=st.sampled_from(["/v1/chat/completions", "/v1/models", "", "*", "/\udcff"[:1]]),
)
BODIES = st.builds(
    request_body, st.sampled_from([BODY, b"", b"{", BODY[:20], BODY[20:]]), is_last=st.booleans()
)
ANSWERS = st.one_of(
    st.builds(
        response_headers,
        st.sampled_from([100, 200, 404, 503]),
        is_last=st.booleans(),
        content_type=st.sampled_from(["text/event-stream", "application/json"]),
    ),
    st.builds(
        response_body,
        st.sampled_from([b"", event({"content": "a"}), b'{"usage": {"prompt_tokens": 1}}']),
        is_last=st.booleans(),
    ),
)
RARE = st.sampled_from([request_trailers(), response_trailers(), ProcessingRequest()])
ORDERED = st.tuples(
    HEADERS, st.lists(BODIES, max_size=3), st.lists(st.one_of(ANSWERS, RARE), max_size=4)
).map(lambda parts: [parts[0], *parts[1], *parts[2]])
ANY = st.lists(st.one_of(HEADERS, BODIES, ANSWERS, RARE), max_size=8)
PHASES = [
    "request_headers",
    "request_body",
    "request_trailers",
    "response_headers",
    "response_body",
    "response_trailers",
    "immediate_response",
]


async def test_any_order_is_survived_and_leaves_nothing(face: Face, stage: Stage) -> None:
    @settings(max_examples=250, deadline=None)
    @given(messages=st.one_of(ORDERED, ANY))
    def check(messages: list[ProcessingRequest]) -> None:
        gateway = Gateway(face)
        gateway.tell(*messages)
        before = kinds(gateway.got)
        gateway.leave()

        assert gateway.status in (0, 3)
        assert face.held_bytes == 0
        # A pick whose answer nobody shows is held; every other one has ended.
        assert stage.leases_open == len(face.picks)
        assert kinds(gateway.got) == before
        _check_phases(before)
        sent = b"".join(
            message.request_body.body
            for message in messages
            if message.WhichOneof("request") == "request_body"
        )
        assert sent.startswith(b"".join(streamed(gateway.got)))

    check()


def _check_phases(found: list[str]) -> None:
    """Answers follow the phases of a request; a refusal is the last word."""
    places = [PHASES.index(kind) for kind in found]
    assert places == sorted(places)
    for kind in ("request_headers", "request_trailers", "response_headers", "immediate_response"):
        assert found.count(kind) <= 1
