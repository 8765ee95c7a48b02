"""Which ports a process opens for gateways."""

import os
import signal
from contextlib import nullcontext
from pathlib import Path

import pytest

from routing.servers.__main__ import main
from routing.servers.faces.ports import NO_FACES, FaceOptions
from tests.routing.servers.client import request
from tests.routing.servers.faces.certificates import CERTIFICATES, trusting
from tests.routing.servers.faces.http2.peer import Peer
from tests.routing.servers.running import (
    CLIENT,
    PROCESSES,
    Start,
    engine_arguments,
    push,
    router_arguments,
    start_several,
    until_serving,
)
from tests.routing.servers.scripted import CHAT, Stage, chat


def test_each_of_several_processes_has_ports_of_its_own() -> None:
    options = FaceOptions(authz=9001, ext_proc=0)

    assert options.of_process(2) == FaceOptions(authz=9003, ext_proc=0)
    assert NO_FACES.of_process(2) == NO_FACES


@pytest.mark.parametrize(
    ("options", "processes", "is_refused"),
    [
        (FaceOptions(authz=9001, ext_proc=9002), 1, False),
        (FaceOptions(authz=9001, ext_proc=9002), 2, True),
        (FaceOptions(authz=9001, ext_proc=9005), 4, False),
        (FaceOptions(authz=8080), 1, True),
        (FaceOptions(authz=8078), 4, True),
        (FaceOptions(authz=0, ext_proc=0), 64, False),
    ],
)
def test_ports_that_would_meet_are_refused_before_anything_starts(
    options: FaceOptions, processes: int, *, is_refused: bool
) -> None:
    others = {"the inference port": 8080, "the admin port": 0}

    with pytest.raises(ValueError, match="twice") if is_refused else nullcontext():
        options.check(others=others, processes=processes)


def test_ports_that_gateways_know_are_opened_again() -> None:
    assert FaceOptions(authz=0).again({"authz": 4711}) == FaceOptions(authz=4711)
    assert FaceOptions(authz=0).again({}) == FaceOptions(authz=0)


CERT, KEY = str(CERTIFICATES / "a.crt"), str(CERTIFICATES / "a.key")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (FaceOptions(ext_proc=0, tls_cert=CERT), "both or neither"),
        (FaceOptions(ext_proc=0, tls_key=KEY), "both or neither"),
        (FaceOptions(authz=0, tls_cert=CERT, tls_key=KEY), "--ext-proc-port"),
        (FaceOptions(ext_proc=0, tls_cert="/no/such", tls_key=KEY), "/no/such cannot be read"),
        (FaceOptions(ext_proc=0, tls_cert=KEY, tls_key=KEY), "not a certificate"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_refused_at_the_start(
    options: FaceOptions, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        options.check_certificate()


def test_a_certificate_and_its_key_are_taken_and_so_is_none() -> None:
    FaceOptions(ext_proc=0, tls_cert=CERT, tls_key=KEY).check_certificate()
    FaceOptions(ext_proc=0).check_certificate()


async def test_a_router_opens_no_port_that_nobody_asked_for(stage: Stage) -> None:
    assert stage.router.face_ports == [{}]


@pytest.mark.processes
async def test_the_ready_line_tells_the_ports(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engine = await launch(*engine_arguments("both"))
    router = await launch(*router_arguments(tmp_path / "s", token_file, "--authz-port", "0"))
    await push(router, {"a": engine})

    (ports,) = router.ready["faces"]
    answer = await request(ports["authz"], "POST", "/pick" + CHAT, chat(), headers=CLIENT)

    assert answer.headers["x-gateway-destination-endpoint"] == f"127.0.0.1:{engine.port}"


@pytest.mark.processes
async def test_a_process_that_starts_again_has_the_ports_it_had(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, tmp_path / "s", token_file, "--authz-port", "0")
    await push(router, {"a": engine})
    ports = [opened["authz"] for opened in router.ready["faces"]]

    killed = (await until_serving(router))["processes"][1]["pid"]
    os.kill(killed, signal.SIGKILL)
    await until_serving(router, other_than={killed})
    answers = [
        await request(port, "POST", "/pick" + CHAT, chat(), headers=CLIENT) for port in ports
    ]

    assert len(set(ports)) == PROCESSES
    assert [answer.status for answer in answers] == [200] * PROCESSES


def test_a_wrong_certificate_ends_the_start_with_a_sentence(
    tmp_path: Path, token_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tls = ("--ext-proc-port", "0", "--ext-proc-tls-cert", str(tmp_path / "no"))
    arguments = router_arguments(tmp_path / "s", token_file, *tls, "--ext-proc-tls-key", KEY)

    assert main(arguments[1:]) == 2
    assert f"{tmp_path / 'no'} cannot be read" in caplog.text


@pytest.mark.processes
async def test_every_process_speaks_tls(launch: Start, tmp_path: Path, token_file: Path) -> None:
    tls = ("--ext-proc-tls-cert", CERT, "--ext-proc-tls-key", KEY)
    arguments = (tmp_path / "s", token_file, "--ext-proc-port", "0", *tls)
    router = await start_several(launch, *arguments)
    for opened in router.ready["faces"]:
        async with Peer(opened["ext_proc"], tls=trusting("a")) as peer:
            await peer.greet()
            assert await peer.frame() is not None
