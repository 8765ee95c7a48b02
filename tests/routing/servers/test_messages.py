"""The message to an engine, byte for byte."""

from types import SimpleNamespace
from typing import cast

from routing.servers.calls import Call
from routing.servers.messages import request_message
from routing.servers.upstream import Origin


def test_few_headers_and_the_body_as_it_is() -> None:
    request = SimpleNamespace(path="/v1/completions", id="my-id")
    call = cast(Call, SimpleNamespace(request=request, trace_headers=b"traceparent: t\r\n"))

    message = request_message(call, Origin("::1", 8000), b'{"a": 1}')

    assert message == (
        b"POST /v1/completions HTTP/1.1\r\n"
        b"host: [::1]:8000\r\n"
        b"content-type: application/json\r\n"
        b"accept: */*\r\n"
        b"x-request-id: my-id\r\n"
        b"content-length: 8\r\n"
        b"traceparent: t\r\n"
        b"\r\n"
        b'{"a": 1}'
    )
