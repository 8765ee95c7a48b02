"""`python -m controlplane.serving.enginehost --port 8460 --state-dir DIR --token-file FILE`.

Ending the host ends no engine. `--end-engines` ends every engine that the state folder knows and
returns; run it when the host is down.
"""

import argparse
import ipaddress
import json
import logging
import signal
import sys
import threading
from pathlib import Path

from controlplane.serving.enginehost.http import EngineHostServer
from controlplane.serving.enginehost.records import claimed
from controlplane.serving.enginehost.supervisor import Supervisor

PROJECT = Path(__file__).resolve().parents[3]


def main(arguments: list[str]) -> int:
    """Run until SIGTERM or SIGINT; 2 for settings that do not fit."""
    options = _options(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    options.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = claimed(options.state_dir)
    if lock is None:
        sys.stderr.write(
            f"Another engine host uses {options.state_dir}; two would fight over it.\n"
        )
        return 2
    supervisor = Supervisor(options.state_dir, project=PROJECT, grace_seconds=options.grace_seconds)
    supervisor.adopt()
    if options.end_engines:
        supervisor.end_all()
        supervisor.close()
        return 0
    token = options.token_file.read_text().strip() if options.token_file else ""
    if len(token) < 16:
        sys.stderr.write("--token-file names a file with a token of at least 16 characters.\n")
        return 2
    supervisor.converge_all()
    server = EngineHostServer((options.host, options.port), supervisor, token)
    threading.Thread(target=supervisor.watch, name="watch", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        # `shutdown` waits for the serving loop, so it must not run inside it.
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    sys.stdout.write(json.dumps({"ready": True, "port": server.server_port}) + "\n")
    sys.stdout.flush()
    server.serve_forever(poll_interval=0.1)
    server.server_close()
    supervisor.close()
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m controlplane.serving.enginehost")
    parser.add_argument("--host", type=_loopback, default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8460, help="0 chooses a free one")
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--token-file", type=Path)
    parser.add_argument("--grace-seconds", type=float, default=10.0)
    parser.add_argument("--end-engines", action="store_true")
    return parser.parse_args(arguments)


def _loopback(text: str) -> str:
    if not ipaddress.ip_address(text).is_loopback:
        raise argparse.ArgumentTypeError(f"{text} is not a loopback address")
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
