"""Messages for Envoy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.servers.errors import ApiError
from routing.servers.faces.ext_proc import writing
from tests.routing.servers.faces.ext_proc.gateway import set_headers


@pytest.mark.lesson("B01")
@given(size=st.integers(0, 4 * writing.CHUNK_BYTES), is_last=st.booleans())
def test_pieces_join_to_the_body_and_only_the_last_may_end_it(size: int, *, is_last: bool) -> None:
    body = bytes(size)

    pieces = writing.pieces(body, is_last=is_last)

    assert b"".join(piece for piece, _ in pieces) == body
    assert max(len(piece) for piece, _ in pieces) <= writing.CHUNK_BYTES
    assert [end for _, end in pieces] == [False] * (len(pieces) - 1) + [is_last]
    assert all(piece for piece, _ in pieces[1:])


def test_a_refusal_says_when_to_come_back_and_why() -> None:
    error = ApiError(429, "Full.", code="busy", retry_after_seconds=1.2)
    error.dropped_reason = "rejected-saturated"

    told = writing.refused(error, "/v1/chat/completions", {"x-request-id": b"r"}).immediate_response

    assert told.status.code == 429
    assert set_headers(told.headers) == {
        "content-type": "application/json",
        "x-request-id": "r",
        "retry-after": "2",
        "x-llm-d-request-dropped-reason": "rejected-saturated",
    }
    assert told.details == "consort:busy"


def test_header_lines_by_name() -> None:
    assert writing.named(b"a: 1\r\nb: 2: 3\r\n") == {"a": b"1", "b": b"2: 3"}
    assert writing.named(b"") == {}
