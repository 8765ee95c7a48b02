"""What clients get while no picker answers, for every way to ask one; docs/faces.md tells it."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from deploy.envoy.wiring import Address
from tests.e2e.envoy.processes import HERE, envoy
from tests.e2e.envoy.stack import KEY, WAYS, Gateways, picker
from tests.routing.servers.scripted import CHAT, chat

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("envoy")]

BUFFERED = WAYS["ext_proc-buffered"]


@pytest.fixture
def nobody() -> Iterator[Address]:
    """An address where nobody listens, kept from others meanwhile."""
    with socket.socket() as held:
        held.bind((HERE, 0))
        yield Address(HERE, held.getsockname()[1])


@pytest.mark.lesson("B05", "B06")
@pytest.mark.parametrize(
    ("parts", "status"),
    [
        pytest.param({"face": "ext_authz"}, 503, id="ext_authz"),
        pytest.param({"face": "ext_authz", "fails_open": True}, 200, id="ext_authz-open"),
        pytest.param({"face": "ext_proc"}, 500, id="ext_proc"),
        pytest.param(BUFFERED, 500, id="buffered"),
        pytest.param(BUFFERED | {"fails_open": True}, 200, id="buffered-open"),
    ],
)
def test_it_is_as_documented(
    gateways: Gateways, tmp_path: Path, nobody: Address, parts: dict[str, Any], status: int
) -> None:
    documents = gateways.documents[:1]
    with envoy(tmp_path / "e", documents=documents, pickers=[nobody], **parts) as url:
        whole = httpx.post(url + CHAT, json=chat(max_tokens=2), headers=KEY, timeout=20)
        stream = chat(max_tokens=2, stream=True)
        streamed = httpx.post(url + CHAT, json=stream, headers=KEY, timeout=20)

    assert (whole.status_code, streamed.status_code) == (status, status)
    if status == 200:
        assert whole.json()["usage"]["completion_tokens"] == 2
        assert streamed.text.rstrip().endswith("data: [DONE]")


@pytest.mark.parametrize("face", ["ext_authz", "ext_proc"])
def test_a_process_that_is_gone_is_not_asked(
    gateways: Gateways, tmp_path: Path, nobody: Address, face: Any
) -> None:
    pickers = [nobody, picker(gateways.ready, face)]
    documents = gateways.documents
    with (
        envoy(tmp_path / "e", documents=documents, pickers=pickers, face=face) as url,
        httpx.Client(base_url=url, headers=KEY, timeout=20) as client,
    ):
        statuses = {client.post(CHAT, json=chat(max_tokens=2)).status_code for _ in range(10)}

    assert statuses == {200}
