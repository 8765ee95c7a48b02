"""Print a bootstrap for Envoy.

    python -m deploy.envoy POOL.json --face ext_authz --listen 0.0.0.0:8080 \
        --picker 127.0.0.1:9001 > envoy.yaml
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.envoy.bootstrap import bootstrap
from deploy.envoy.wiring import Address, Wiring, WiringError
from routing.core.document import DocumentError, parse_document


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 2 when the parts do not fit together or a file cannot be read."""
    options = _parser().parse_args(arguments)
    try:
        sys.stdout.write(bootstrap(_wiring(options)))
    except (WiringError, DocumentError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _wiring(options: argparse.Namespace) -> Wiring:
    return Wiring(
        documents=[parse_document(path.read_bytes()) for path in options.document],
        face=options.face,
        listen=Address.of(options.listen),
        pickers=[Address.of(text) for text in options.picker],
        body_mode=options.body_mode,
        fails_open=options.fail == "open",
        sees_answers=options.see_answers,
        picker_tls=options.picker_tls,
        picker_ca=options.picker_ca,
        picker_name=options.picker_name,
        admin=Address.of(options.admin) if options.admin else None,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.envoy", description=__doc__)
    add = parser.add_argument
    add("document", type=Path, nargs="+", help="pool document of each pool behind the listener")
    add("--face", choices=("ext_authz", "ext_proc"), required=True)
    add("--listen", required=True, help="ip:port for clients")
    add(
        "--picker",
        action="append",
        required=True,
        help="ip:port of the face, once for each process of each router",
    )
    add("--body-mode", choices=("full-duplex", "buffered"), default="full-duplex")
    add(
        "--fail",
        choices=("closed", "open"),
        default="closed",
        help="without a picker: no answers, or any endpoint's, without keys, limits and residency",
    )
    add("--see-answers", action="store_true", help="ext_proc sees answers: usage and times")
    add("--picker-tls", action="store_true", help="the pickers speak TLS (ext_proc)")
    add(
        "--picker-ca", help="file with authorities that vouch for them; anybody is believed without"
    )
    add("--picker-name", help="DNS name that their certificate must have")
    add("--admin", help="ip:port of Envoy's own admin page; off if absent")
    return parser


if __name__ == "__main__":
    sys.exit(main())
