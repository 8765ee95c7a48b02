"""`python -m controlplane.config.embedded start|stop|status`, or `exec postgres|valkey`."""

import os
import sys

from controlplane.config.embedded import postgres, valkey

USAGE = "Usage: python -m controlplane.config.embedded start | stop | status | exec postgres|valkey"


def start() -> None:
    """Start what no URL names, be it in a variable or in a file."""
    if not _is_given("DATABASE_URL"):
        postgres.ensure_started()
    if not _is_given("BROKER_URL"):
        valkey.ensure_started()


def _is_given(name: str) -> bool:
    return bool(os.environ.get(name) or os.environ.get(f"{name}_FILE"))


def stop() -> None:
    """Stop both, cleanly; what does not run is left alone."""
    valkey.stop()
    postgres.stop()


def main(arguments: list[str]) -> int:
    """Run one command; 2 for a command that does not exist."""
    match arguments:
        case ["start"]:
            start()
        case ["stop"]:
            stop()
        case ["status"]:
            sys.stdout.write(f"postgres {'up' if postgres.is_running() else 'down'}\n")
            sys.stdout.write(f"valkey {'up' if valkey.is_running() else 'down'}\n")
        case ["exec", "postgres"]:
            postgres.execute()
        case ["exec", "valkey"]:
            valkey.execute()
        case _:
            sys.stderr.write(USAGE + "\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
