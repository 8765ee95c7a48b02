"""Run a sidecar: `python -m routing.servers --sidecar --engine http://127.0.0.1:8200 …`."""

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from routing.core.document import Disaggregation, Limits
from routing.engines import sglang, vllm
from routing.servers.faces.prefillers import HostListError
from routing.servers.faces.sidecar import Sidecar, SidecarOptions
from routing.servers.legs import BOOTSTRAP_PORT
from routing.servers.origin import Origin
from routing.servers.start import calm_collector, raise_file_limit, stop_signal

CONNECTORS = {"nixlv2": vllm.ENGINE, "sglang": sglang.ENGINE}
"""Names as llm-d's sidecar has them."""

logger = logging.getLogger("routing.servers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; returns the exit status."""
    given = _parser().parse_args(arguments)
    logging.basicConfig(
        level=given.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        sidecar = Sidecar(_options(given))
    except (OSError, HostListError) as error:
        logger.error("The list of prefill endpoints cannot be used: %s", error)  # noqa: TRY400 - the sentence is the whole story
        return 2
    raise_file_limit()
    return uvloop.run(_run(sidecar))


async def _run(sidecar: Sidecar) -> int:
    stop = stop_signal()
    try:
        await sidecar.start()
    except OSError as error:
        logger.error("The port cannot be opened: %s.", error)  # noqa: TRY400 - the sentence is the whole story
        return 2
    calm_collector()
    sys.stdout.write(json.dumps({"ready": True, "port": sidecar.port, "pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    await stop.wait()
    await sidecar.stop()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m routing.servers --sidecar", description="Sidecar before a decode engine."
    )
    add = parser.add_argument
    add("--sidecar", action="store_true", help="this mode")
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, default=8000, help="port to listen on, 0: any")
    add("--engine", type=_engine, default="http://127.0.0.1:8200", help="the decode engine")
    add("--kv-connector", choices=CONNECTORS, default="nixlv2", help="how the engines hand KV over")
    add(
        "--prefillers",
        type=Path,
        help="file with the prefill endpoints that requests may name: a pool document, or host:port"
        " lines; read again when it changes. Without it no request is split",
    )
    add(
        "--accept-legs",
        action="store_true",
        help="let decode legs of a router pass, which name the blocks to fetch; only where every"
        " client comes through a router of Consort, which refuses such bodies of clients",
    )
    add(
        "--local-prefill-bytes",
        type=int,
        help="longest body whose prompt is computed here after prefill endpoints failed; any if"
        " absent",
    )
    add(
        "--bootstrap-port",
        type=int,
        default=BOOTSTRAP_PORT,
        help="SGLang's port of prefill endpoints for which no pool document states another",
    )
    _add_bounds(parser)
    add("--log-level", default="info", choices=["debug", "info", "warning"])
    return parser


def _add_bounds(parser: argparse.ArgumentParser) -> None:
    add, limits = parser.add_argument, Limits()
    add("--body-megabytes", type=_positive, default=32, help="longest body that is read")
    add(
        "--first-token-seconds",
        type=_positive,
        default=limits.first_token_timeout_seconds,
        help="time for an engine's first token",
    )
    add(
        "--stall-seconds",
        type=_positive,
        default=limits.stall_timeout_seconds,
        help="longest silence in a stream",
    )
    add(
        "--transfer-seconds",
        type=_positive,
        default=Disaggregation().transfer_timeout_seconds,
        help="time to fetch a prompt that was computed elsewhere",
    )
    add("--drain-seconds", type=float, default=30.0, help="time for running requests at the end")


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0, at most 86400.")
    return value


def _engine(text: str) -> Origin:
    try:
        origin = Origin.of(text)
    except ValueError:
        origin = Origin("", 0)
    if not text.startswith("http://") or not origin.host:
        raise argparse.ArgumentTypeError(f"'{text}' is not http://host:port.")
    return origin


def _options(given: argparse.Namespace) -> SidecarOptions:
    return SidecarOptions(
        engine=given.engine,
        kind=CONNECTORS[given.kv_connector],
        prefillers=given.prefillers,
        accepts_legs=given.accept_legs,
        bootstrap_port=given.bootstrap_port,
        host=given.host,
        port=given.port,
        limits=Limits(
            body_bytes=round(given.body_megabytes * 2**20),
            first_token_timeout_seconds=given.first_token_seconds,
            stall_timeout_seconds=given.stall_seconds,
        ),
        disaggregation=Disaggregation(transfer_timeout_seconds=given.transfer_seconds),
        local_prefill_bytes=given.local_prefill_bytes,
        drain_seconds=given.drain_seconds,
    )
