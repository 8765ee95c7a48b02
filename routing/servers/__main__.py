"""Run a router: `python -m routing.servers --name r1 --state-dir DIR --admin-token-file FILE …`."""

import argparse
import asyncio
import gc
import json
import logging
import os
import resource
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from routing.servers.app import Router, RouterOptions
from routing.servers.files import StateFolderBusyError, claim_folder

MINIMUM_TOKEN_CHARACTERS = 16

logger = logging.getLogger("routing.servers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; returns the exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        token = _read_token(options.admin_token_file)
        lock = claim_folder(options.state_dir)
    except (OSError, ValueError, StateFolderBusyError) as error:
        logger.error("%s", error)  # noqa: TRY400 - the sentence is the whole story
        return 2
    _raise_file_limit()
    with lock:
        return uvloop.run(_run(options, token))


def _raise_file_limit() -> None:
    """A stream needs two sockets; the usual soft limit of 1,024 files would end at 500 streams."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _calm_collector() -> None:
    """Modules and documents never become garbage: leave them out, and look for it less often.

    A full collection walks every object and stops all streams meanwhile.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


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
        "--spool-megabytes", type=int, default=512, help="most usage kept while nobody fetches it"
    )
    parser.add_argument(
        "--drain-seconds", type=float, default=8.0, help="time for running requests at the end"
    )
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning"])
    return parser


def _read_token(path: Path) -> bytes:
    token = path.read_bytes().strip()
    if len(token) < MINIMUM_TOKEN_CHARACTERS:
        raise ValueError(
            f"The token in {path} has {len(token)} characters; at least"
            f" {MINIMUM_TOKEN_CHARACTERS} are needed."
        )
    return token


async def _run(options: argparse.Namespace, token: bytes) -> int:
    router = Router(
        RouterOptions(
            name=options.name,
            state_dir=options.state_dir,
            admin_token=token,
            host=options.host,
            port=options.port,
            admin_port=options.admin_port,
            spool_bytes=options.spool_megabytes * 2**20,
            drain_seconds=options.drain_seconds,
        )
    )
    status = 0
    try:
        await router.start()
        _calm_collector()
        _say_ready(router.port, router.admin_port)
        await _stop_signal()
    except OSError as error:
        logger.error("A port cannot be opened: %s.", error)  # noqa: TRY400 - the sentence is the whole story
        status = 2
    await router.stop()
    return status


def _say_ready(port: int, admin_port: int) -> None:
    """One JSON line, for whoever started this process with port 0."""
    line = {"ready": True, "port": port, "admin_port": admin_port, "pid": os.getpid()}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def _stop_signal() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    await stop.wait()


if __name__ == "__main__":
    sys.exit(main())
