"""A pool and the wirings whose bootstraps are kept as golden files."""

from pathlib import Path
from typing import Any

from deploy.envoy.wiring import Address, Wiring
from routing.core.document import PoolDocument
from tests.routing.servers.scripted import Engine, answers, document

GOLDEN = Path(__file__).parent / "golden"
PICKERS = (Address("10.0.0.5", 9001), Address("10.0.0.5", 9002))


def pool(*names: str, **changes: Any) -> PoolDocument:
    """A pool of engines on one address, with ports in order."""
    engines = [
        Engine(name, answers, port=8000 + number) for number, name in enumerate(names or ("a", "b"))
    ]
    return document(engines, **changes)


def wiring(**changes: Any) -> Wiring:
    """A wiring that fits together, changed."""
    fields: dict[str, Any] = {
        "documents": [pool()],
        "face": "ext_authz",
        "listen": Address("10.0.0.9", 8080),
        "pickers": PICKERS,
    }
    return Wiring(**(fields | changes))


KEPT: dict[str, dict[str, Any]] = {
    "ext_authz": {},
    "ext_authz-open": {"fails_open": True},
    "ext_proc": {"face": "ext_proc"},
    "ext_proc-answers": {"face": "ext_proc", "sees_answers": True},
    "ext_proc-buffered-open": {
        "face": "ext_proc",
        "body_mode": "buffered",
        "fails_open": True,
        "sees_answers": True,
        "admin": Address("127.0.0.1", 9901),
    },
    "ext_proc-tls": {"face": "ext_proc", "picker_tls": True},
}
"""Name of the golden file to what is changed."""
