"""From a client's request to a call: ids, sessions, what is handed on."""

import json
from pathlib import Path

import pytest

from routing.core.document import encode_document
from routing.servers.app import Router, RouterOptions
from routing.servers.calls import Call, read_call
from routing.servers.errors import ApiError
from routing.servers.http_parts import HttpRequest
from routing.servers.state import RouterState
from tests.routing.servers.scripted import (
    ADMIN_TOKEN,
    CHAT,
    SECRET,
    Engine,
    answers,
    chat,
    document,
)


@pytest.fixture
async def state(tmp_path: Path) -> RouterState:
    options = RouterOptions(name="r1", state_dir=tmp_path, admin_token=ADMIN_TOKEN.encode())
    state = Router(options).state
    state.directory.apply(encode_document(document([Engine("a", answers, port=8000)])))
    return state


def call_of(state: RouterState, body: object, **headers: str) -> Call:
    raw = json.dumps(body).encode()
    named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    request = HttpRequest(
        method="POST",
        path=CHAT,
        query="",
        headers={b"authorization": f"bearer {SECRET}".encode()} | named,
        body=raw,
    )
    return read_call(state, request, path=CHAT, body=raw)


async def test_tenant_and_project_come_from_the_key(state: RouterState) -> None:
    call = call_of(state, chat(), x_tenant_id="somebody-else")

    request = call.request
    assert (request.tenant, request.project, request.key_id) == (
        "tenant-ana",
        "project-ana",
        "key-ana",
    )


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [("abc-1.2:3_x", True), ("", False), ("has space", False), ("x" * 200, False)],
)
async def test_a_clients_request_id_is_kept_when_it_is_harmless(
    state: RouterState, given: str, *, is_kept: bool
) -> None:
    call = call_of(state, chat(), x_request_id=given)

    assert (call.request.id == given) is is_kept
    assert call.request.id


async def test_engines_get_an_id_that_no_other_request_has(state: RouterState) -> None:
    given = [call_of(state, chat(), x_request_id="mine").engine_id for _ in range(3)]
    made = call_of(state, chat()).engine_id
    copied = call_of(state, chat(), x_request_id=made).engine_id
    prefixed = call_of(state, chat(), x_request_id=given[0]).engine_id

    assert len({*given, made, copied, prefixed}) == 6
    assert all(name.startswith("mine.") for name in given)


async def test_ids_made_here_differ(state: RouterState) -> None:
    assert len({call_of(state, chat()).request.id for _ in range(100)}) == 100


async def test_the_session_comes_from_headers_or_the_user(state: RouterState) -> None:
    by_header = call_of(state, chat(user="other"), x_session_id="s").request
    by_user = call_of(state, chat(user="s")).request

    assert by_header.session == by_user.session
    assert call_of(state, chat()).request.session is None


async def test_trace_context_is_handed_on(state: RouterState) -> None:
    call = call_of(state, chat(), traceparent="00-a-b-01", baggage="secret=1")

    assert call.trace_headers == b"traceparent: 00-a-b-01\r\n"


@pytest.mark.parametrize(
    "name",
    [
        "kv_transfer_params",
        "ec_transfer_params",
        "bootstrap_host",
        "bootstrap_port",
        "bootstrap_room",
    ],
)
async def test_members_that_steer_kv_are_the_routers_alone(state: RouterState, name: str) -> None:
    with pytest.raises(ApiError) as raised:
        call_of(state, chat(**{name: "x"}))

    assert (raised.value.status, raised.value.param) == (400, name)
    assert call_of(state, chat(**{name: None})).request.model


async def test_prompt_tokens_use_the_learned_ratio(state: RouterState) -> None:
    messages = [{"role": "user", "content": "x" * 4000}]

    parsed = call_of(state, chat(messages=messages)).request.parsed

    assert parsed.prompt_tokens == pytest.approx(1000, rel=0.05)
