"""The admin port over TLS: documents hold salts and hashes of keys, so none crosses in clear."""

import logging
import shutil
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from routing.core.document import encode_document
from routing.servers.__main__ import main
from routing.servers.app import ADMIN_BODY_BYTES
from routing.servers.faces.http2.tls import Certificate
from routing.servers.listening import HTTP
from tests.routing.servers.client import RawClient
from tests.routing.servers.faces.certificates import CERTIFICATES, trusting
from tests.routing.servers.scripted import ADMIN_TOKEN, Stage, document

HEADERS = {"authorization": f"Bearer {ADMIN_TOKEN}"}


@pytest.fixture
async def secured(stage: Stage, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a router whose admin port has certificate a."""
    files = [tmp_path / "tls.crt", tmp_path / "tls.key"]
    for file in files:
        shutil.copyfile(CERTIFICATES / f"a{file.suffix}", file)
    certificate = Certificate(*files, now=time.monotonic, protocol=HTTP)
    await stage.router.stop()
    await stage.start_router(admin_certificate=certificate)
    address = f"https://127.0.0.1:{stage.router.admin_port}"
    async with httpx.AsyncClient(
        base_url=address, verify=trusting("a", offers=()), trust_env=False, headers=HEADERS
    ) as client:
        yield client


async def test_documents_go_in_and_state_comes_out(
    stage: Stage, secured: httpx.AsyncClient
) -> None:
    engine = await stage.engine("e1")

    pushed = await secured.put("/admin/pool-document", content=encode_document(document([engine])))
    state = await secured.get("/admin/state")
    ready = await secured.get("/readyz")

    assert (pushed.status_code, ready.status_code) == (200, 200)
    assert [row["pool"] for row in state.json()["documents"]] == [pushed.json()["pool"]]
    assert (await stage.ask({"model": "m"})).status in {400, 404}


async def test_a_body_that_is_too_long_is_told_so(secured: httpx.AsyncClient) -> None:
    answer = await secured.put("/admin/pool-document", content=b"x" * (ADMIN_BODY_BYTES + 1))

    assert answer.status_code == 413


@pytest.mark.usefixtures("secured")
async def test_nobody_is_answered_in_clear(stage: Stage) -> None:
    async with RawClient(stage.router.admin_port) as client:
        await client.send(b"GET /admin/state HTTP/1.1\r\nhost: test\r\n\r\n")

        assert b"HTTP/1.1" not in await client.reader.read()


@pytest.mark.usefixtures("secured")
async def test_a_worker_believes_only_the_authority_it_knows(stage: Stage) -> None:
    address = f"https://127.0.0.1:{stage.router.admin_port}/readyz"

    async with httpx.AsyncClient(verify=trusting("b", offers=()), trust_env=False) as stranger:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await stranger.get(address)


def test_the_port_agrees_on_http_by_name() -> None:
    files = CERTIFICATES / "a.crt", CERTIFICATES / "a.key"
    server = Certificate(*files, now=time.monotonic, protocol=HTTP).context()
    client = trusting("a", offers=("h2", "http/1.1"))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="picker.test"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for end in ends * 3:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue

    assert [end.selected_alpn_protocol() for end in ends] == [HTTP, HTTP]


@pytest.mark.parametrize("name", ["--admin-tls-cert", "--admin-tls-key"])
def test_half_a_pair_stops_the_start(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = tmp_path / "token"
    token.write_text("t" * 32)
    options = ["--name", "r", "--state-dir", str(tmp_path), "--admin-token-file", str(token)]

    with caplog.at_level(logging.ERROR):
        assert main([*options, name, str(CERTIFICATES / "a.crt")]) == 2

    assert "give both or neither" in caplog.text
