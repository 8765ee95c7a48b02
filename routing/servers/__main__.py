"""Run a router: `python -m routing.servers --name r1 --state-dir DIR --admin-token-file FILE …`."""

import argparse
import asyncio
import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from routing.servers import clock
from routing.servers.app import Router, RouterOptions
from routing.servers.faces import sidecar_main
from routing.servers.faces.http2.tls import Certificate
from routing.servers.faces.ports import FaceOptions
from routing.servers.files import StateFolderBusyError, claim_folder
from routing.servers.listening import HTTP
from routing.servers.peer_port import Peering, parse_peer
from routing.servers.several import NotStartedError, SeveralRouter
from routing.servers.start import calm_collector, raise_file_limit, stop_signal

MINIMUM_TOKEN_CHARACTERS = 16
MAX_PROCESSES = 64

logger = logging.getLogger("routing.servers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if "--sidecar" in given:
        return sidecar_main.main(given)
    options = _parser().parse_args(given)
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        token = _read_token(options.admin_token_file)
        peering = _peering(options, token)
        _check_faces(options)
        certificate = _admin_certificate(options)
        lock = claim_folder(options.state_dir)
    except (OSError, ValueError, StateFolderBusyError) as error:
        logger.error("%s", error)  # noqa: TRY400 - the sentence is the whole story
        return 2
    raise_file_limit()
    with lock:
        return uvloop.run(
            _run(options, _router_options(options, token, peering, certificate), lock.fileno())
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m routing.servers", description=__doc__)
    parser.add_argument("--name", required=True, help="name of this router in records and usage")
    parser.add_argument("--host", default="127.0.0.1", help="address of both ports")
    parser.add_argument("--port", type=int, default=8080, help="inference port, 0: any")
    parser.add_argument("--admin-port", type=int, default=8081, help="admin port, 0: any")
    parser.add_argument("--state-dir", type=Path, required=True, help="documents and usage spool")
    parser.add_argument(
        "--admin-token-file", type=Path, required=True, help="file with the admin port's token"
    )
    parser.add_argument(
        "--admin-tls-cert",
        type=Path,
        help="file with the certificate (and chain) of the admin port, as PEM; no TLS if absent",
    )
    parser.add_argument(
        "--admin-tls-key",
        type=Path,
        help="file with its private key, as PEM; both are read again on change",
    )
    parser.add_argument(
        "--tokenizers-dir",
        type=Path,
        help="folder with one folder of tokenizer files per model; STATE_DIR/tokenizers if absent",
    )
    parser.add_argument(
        "--spool-megabytes", type=int, default=512, help="most usage kept while nobody fetches it"
    )
    parser.add_argument(
        "--drain-seconds", type=float, default=8.0, help="time for running requests at the end"
    )
    _add_several(parser)
    _add_faces(parser)
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning"])
    return parser


def _add_several(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--processes", type=_processes, default=1, help="serving processes, 1 to 64; one per core")
    add("--gossip-port", type=int, help="UDP port for other routers of the same pools, 0: any")
    add("--gossip-host", help="address of the gossip port; that of the other ports if absent")
    add(
        "--peer",
        action="append",
        default=[],
        help="host:port of another router's gossip port; a name may have several addresses",
    )
    add(
        "--gossip-secret-file",
        type=Path,
        help="file with the secret that all routers share; the admin token if absent",
    )


def _add_faces(parser: argparse.ArgumentParser) -> None:
    """Ports for gateways. With several processes each opens its own, counted from the one given."""
    for name, what in (
        ("--authz-port", "port for Envoy's ext_authz filter"),
        ("--ext-proc-port", "port of the endpoint-picker protocol (ext_proc)"),
        ("--health-port", "port of gRPC health"),
    ):
        parser.add_argument(name, type=int, help=f"{what}, 0: any; off if absent")
    for name, what in (
        ("--ext-proc-tls-cert", "file with the certificate (and chain) of ext_proc's port, as PEM"),
        ("--ext-proc-tls-key", "file with its private key, as PEM; both are read again on change"),
    ):
        parser.add_argument(name, help=f"{what}; without TLS if absent")
    parser.add_argument(
        "--conformance-tests",
        action="store_true",
        help="let headers of the gateway conformance tests choose endpoints (ext_proc)",
    )
    parser.add_argument(
        "--observe",
        action="store_true",
        help="look at streams of somebody else's gateway in observability mode (ext_proc)",
    )
    parser.add_argument(
        "--ext-proc-scores",
        action="store_true",
        help="tell gateways how good each endpoint was, beside the pick",
    )


def _processes(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MAX_PROCESSES:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to {MAX_PROCESSES}.")
    return int(text)


def _read_token(path: Path) -> bytes:
    token = path.read_bytes().strip()
    if len(token) < MINIMUM_TOKEN_CHARACTERS:
        raise ValueError(
            f"The token in {path} has {len(token)} characters; at least"
            f" {MINIMUM_TOKEN_CHARACTERS} are needed."
        )
    return token


def _peering(options: argparse.Namespace, token: bytes) -> Peering | None:
    """Raises OSError or ValueError."""
    if options.gossip_port is None and not options.peer:
        return None
    secret_file = options.gossip_secret_file
    return Peering(
        host=options.gossip_host or options.host,
        gossip_port=options.gossip_port or 0,
        peers=tuple(parse_peer(peer) for peer in options.peer),
        secret=token if secret_file is None else _read_token(secret_file),
    )


def _faces(options: argparse.Namespace) -> FaceOptions:
    return FaceOptions(
        authz=options.authz_port,
        ext_proc=options.ext_proc_port,
        health=options.health_port,
        is_testing=options.conformance_tests,
        tells_scores=options.ext_proc_scores,
        observes=options.observe,
        tls_cert=options.ext_proc_tls_cert,
        tls_key=options.ext_proc_tls_key,
    )


def _check_faces(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    own = {"the inference port": options.port, "the admin port": options.admin_port}
    faces = _faces(options)
    faces.check(others=own, processes=options.processes)
    faces.check_certificate()


def _admin_certificate(options: argparse.Namespace) -> Certificate | None:
    """Raises ValueError."""
    chain, key = options.admin_tls_cert, options.admin_tls_key
    if (chain is None) != (key is None):
        raise ValueError(
            "--admin-tls-cert and --admin-tls-key are a certificate and its key: give both or"
            " neither."
        )
    return None if chain is None else Certificate(chain, key, now=clock.monotonic, protocol=HTTP)


def _router_options(
    options: argparse.Namespace,
    token: bytes,
    peering: Peering | None,
    certificate: Certificate | None,
) -> RouterOptions:
    return RouterOptions(
        name=options.name,
        state_dir=options.state_dir,
        admin_token=token,
        host=options.host,
        port=options.port,
        admin_port=options.admin_port,
        admin_certificate=certificate,
        spool_bytes=options.spool_megabytes * 2**20,
        drain_seconds=options.drain_seconds,
        tokenizers_dir=options.tokenizers_dir,
        peering=peering,
        faces=_faces(options),
    )


async def _run(arguments: argparse.Namespace, options: RouterOptions, lock: int) -> int:
    router: Router | SeveralRouter
    if arguments.processes == 1:
        router = Router(options)
    else:
        # Until its last process is gone, nobody else may use the state folder.
        router = SeveralRouter(options, processes=arguments.processes, inherited=(lock,))
    status = 0
    stop = stop_signal()
    try:
        if await _started(router, stop):
            calm_collector()
            _say_ready(router)
            await stop.wait()
    except OSError as error:
        logger.error("A port cannot be opened: %s.", error)  # noqa: TRY400 - the sentence is the whole story
        status = 2
    except NotStartedError as error:
        logger.error("%s", error)  # noqa: TRY400 - the sentence is the whole story
        status = 2
    await router.stop()
    return status


async def _started(router: Router | SeveralRouter, stop: asyncio.Event) -> bool:
    """False when the end was asked for before the start was over."""
    loop = asyncio.get_running_loop()
    starting, stopping = loop.create_task(router.start()), loop.create_task(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return False
    await starting
    return True


def _say_ready(router: Router | SeveralRouter) -> None:
    """One JSON line, for whoever started this process with port 0."""
    line = {
        "ready": True,
        "port": router.port,
        "admin_port": router.admin_port,
        "gossip_port": router.gossip_port or None,
        "faces": router.face_ports,
        "pid": os.getpid(),
    }
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
