"""A router with all faces and an Envoy for each, over fake engines, as `bench_faces` needs them."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from deploy.envoy import program
from deploy.envoy.bootstrap import bootstrap
from deploy.envoy.wiring import Address, Wiring
from routing.core.document import parse_document
from tests.benchmarks import processes
from tests.benchmarks.peers import ours

HERE, FIRST_ENGINE_PORT, ENGINES = "127.0.0.1", 9300, 64
PORTS = {
    "engine": FIRST_ENGINE_PORT, "proxy": 9400, "envoy": 9401, "ext_authz": 9402, "ext_proc": 9403,
    "ext_proc-answers": 9404,
}  # fmt: skip
AUTHZ, EXT_PROC = 9410, 9420
"""Ports of the faces; those of further processes follow."""
ALL = ("envoy", "ext_authz", "ext_proc", "ext_proc-answers")


@dataclass(frozen=True, slots=True)
class Way:
    """Where requests are sent, and whose CPU time they cost."""

    name: str
    port: int
    envoy: int | None
    router: int | None


@contextmanager
def running(
    work: Path, count: int, *, first: bytes, names: Sequence[str] = ALL, routers: int = 1
) -> Iterator[list[Way]]:
    """Ways over so many engines, each answering; `routers` processes serve them."""
    raw = ours.document([f"http://{HERE}:{FIRST_ENGINE_PORT + one}" for one in range(count)])
    with ExitStack() as stack:
        command = f"{_router(work, raw)} --processes {routers}"
        router = stack.enter_context(processes.running(command, work / "router.log")).pid
        ways = [
            Way("engine", PORTS["engine"], None, None),
            Way("proxy", PORTS["proxy"], None, router),
        ]
        _wait(PORTS["proxy"], first)
        for name in names:
            file = work / f"envoy-{name}.yaml"
            file.write_text(_config(name, raw, routers))
            line = f"{program.find()} -c {file} --concurrency 1 --disable-hot-restart -l warning"
            envoy = stack.enter_context(processes.running(line, work / f"envoy-{name}.log")).pid
            ways.append(Way(name, PORTS[name], envoy, None if name == "envoy" else router))
            _wait(PORTS[name], first)
        yield ways


def _wait(port: int, first: bytes) -> None:
    assert processes.wait_until_serving(port, first), f"Nobody serves on port {port}."


def _router(work: Path, raw: bytes) -> str:
    command = shlex.join(ours.command(work / "faces-router", raw, port=str(PORTS["proxy"])))
    return f"{command} --authz-port {AUTHZ} --ext-proc-port {EXT_PROC}"


def _config(name: str, raw: bytes, routers: int) -> str:
    is_ext_proc = name.startswith("ext_proc")
    base = EXT_PROC if is_ext_proc else AUTHZ
    wiring = Wiring(
        documents=[parse_document(raw)],
        face="ext_proc" if is_ext_proc else "ext_authz",
        listen=Address(HERE, PORTS[name]),
        pickers=[Address(HERE, base + number) for number in range(routers)],
        sees_answers=name.endswith("answers"),
        # Envoy alone has no picker, so it needs the route for requests that nobody picked for.
        fails_open=name == "envoy",
    )
    config = yaml.safe_load(bootstrap(wiring))
    (listener,) = config["static_resources"]["listeners"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    # Writing its log is no part of what a face costs.
    del manager["access_log"]
    if name == "envoy":
        del manager["http_filters"][0]
    return str(yaml.safe_dump(config))
