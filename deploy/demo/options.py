"""What a demo run was asked for: ports, length, report; refused with the variable's name."""

import argparse
import errno
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MINIMUM_SECONDS = 50
"""Two policies need at least 20 s of traffic each, and time to finish."""
ROUTERS = ("router-a", "router-b")


class OptionsError(Exception):
    """The demo cannot start as asked; the message names the variable and what is allowed."""


@dataclass(frozen=True)
class Options:
    """One run of the demo."""

    seconds: int | None
    """Length of the traffic; None runs until Ctrl-C."""
    report: Path | None
    web_port: int
    engine_host_port: int
    quiet_rate: float
    """Requests per second that go on after the comparison; 0 for none."""
    router_ports: Mapping[str, int] = field(default_factory=dict)
    admin_ports: Mapping[str, int] = field(default_factory=dict)
    gossip_ports: Mapping[str, int] = field(default_factory=dict)
    """UDP, on which the routers share what they know."""

    @property
    def web_url(self) -> str:
        """Address of the console."""
        return f"http://127.0.0.1:{self.web_port}"

    @property
    def router_urls(self) -> list[str]:
        """Addresses that clients of the models use."""
        return [f"http://127.0.0.1:{port}" for port in self.router_ports.values()]

    def ports(self) -> dict[str, int]:
        """Every port with the variable that moves it."""
        named = {"DEMO_WEB_PORT": self.web_port, "DEMO_ENGINE_HOST_PORT": self.engine_host_port}
        for letter, router in zip("AB", ROUTERS, strict=True):
            named[f"DEMO_ROUTER_{letter}_PORT"] = self.router_ports[router]
            named[f"DEMO_ROUTER_{letter}_ADMIN_PORT"] = self.admin_ports[router]
            named[f"DEMO_ROUTER_{letter}_GOSSIP_PORT"] = self.gossip_ports[router]
        return named


def read_options(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Options from the command line and the `DEMO_…_PORT` variables. Raises OptionsError."""
    parser = argparse.ArgumentParser(prog="python -m deploy.demo", description=__doc__)
    parser.add_argument("--seconds", default="", help="end after this much traffic; empty: Ctrl-C")
    parser.add_argument("--report", default="", help="write the result as JSON to this file")
    given = parser.parse_args(arguments)
    return Options(
        seconds=_seconds(given.seconds),
        report=Path(given.report) if given.report else None,
        web_port=_port(environment, "DEMO_WEB_PORT", 8000),
        engine_host_port=_port(environment, "DEMO_ENGINE_HOST_PORT", 8460),
        quiet_rate=_rate(environment, "DEMO_QUIET_RATE", 3.0),
        router_ports={
            "router-a": _port(environment, "DEMO_ROUTER_A_PORT", 8080),
            "router-b": _port(environment, "DEMO_ROUTER_B_PORT", 8081),
        },
        admin_ports={
            "router-a": _port(environment, "DEMO_ROUTER_A_ADMIN_PORT", 8180),
            "router-b": _port(environment, "DEMO_ROUTER_B_ADMIN_PORT", 8181),
        },
        gossip_ports={
            "router-a": _port(environment, "DEMO_ROUTER_A_GOSSIP_PORT", 8280),
            "router-b": _port(environment, "DEMO_ROUTER_B_GOSSIP_PORT", 8281),
        },
    )


def check_ports(options: Options) -> None:
    """Raise OptionsError that names each port in use and the variable that moves it."""
    seen: dict[int, str] = {}
    for variable, port in options.ports().items():
        if port in seen:
            raise OptionsError(f"{variable} and {seen[port]} are both {port}: give each its own.")
        seen[port] = variable
        kind = socket.SOCK_DGRAM if "GOSSIP" in variable else socket.SOCK_STREAM
        if not _is_free(port, kind):
            raise OptionsError(
                f"Port {port} is in use. Stop what listens there, or set {variable} to another "
                f"port, as in 'make demo {variable}={port + 1000}'."
            )


def _is_free(port: int, kind: socket.SocketKind) -> bool:
    with socket.socket(socket.AF_INET, kind) as probe:
        if kind is socket.SOCK_STREAM:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    if not text.isdecimal() or not 1024 <= int(text) <= 65535:
        raise OptionsError(f"{name}={text!r}: use a port from 1024 to 65535.")
    return int(text)


def _rate(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name) or str(default)
    if not re.fullmatch(r"\d{1,2}(\.\d+)?", text):
        raise OptionsError(f"{name}={text!r}: use requests per second from 0 to 99.")
    return float(text)


def _seconds(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or not MINIMUM_SECONDS <= int(text) <= 86_400:
        raise OptionsError(
            f"DEMO_SECONDS={text!r}: use a number from {MINIMUM_SECONDS} to 86400, or leave it out."
        )
    return int(text)


def environment_of(options: Options) -> dict[str, str]:
    """Environment of every process of the demo."""
    return {
        **os.environ,
        "SIMULATED": "true",
        "INSTALLATION": "Consort demo",
        "KEY_ENVIRONMENT": "demo",
        "ENGINE_HOST_URL": f"http://127.0.0.1:{options.engine_host_port}",
        "DEMO_PLUG": "deploy.demo.plug",
        "PYTHONUNBUFFERED": "1",
    }
