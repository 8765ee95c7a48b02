"""The message to an engine, byte for byte."""

from types import SimpleNamespace
from typing import cast

import pytest

from routing.servers.calls import Call
from routing.servers.documents import Endpoint
from routing.servers.messages import request_message
from routing.servers.origin import Origin


def message_to(rank: int | None) -> bytes:
    fields = SimpleNamespace(
        engine_id="my-id",
        trace_headers=b"traceparent: t\r\n",
        method="POST",
        target="/v1/completions",
        content_type=b"application/json",
    )
    call = cast(Call, fields)
    spec = SimpleNamespace(data_parallel_rank=rank)
    endpoint = cast(Endpoint, SimpleNamespace(origin=Origin("::1", 8000), spec=spec))
    return request_message(call, endpoint, b'{"a": 1}')


def test_few_headers_and_the_body_as_it_is() -> None:
    assert message_to(None) == (
        b"POST /v1/completions HTTP/1.1\r\n"
        b"host: [::1]:8000\r\n"
        b"content-type: application/json\r\n"
        b"accept: */*\r\n"
        b"content-length: 8\r\n"
        b"x-request-id: my-id\r\n"
        b"traceparent: t\r\n"
        b"\r\n"
        b'{"a": 1}'
    )


@pytest.mark.lesson("F10")
def test_ranks_behind_one_address_are_told_apart_by_a_header() -> None:
    assert b"\r\nx-data-parallel-rank: 3\r\ncontent-length: 8\r\n" in message_to(3)
