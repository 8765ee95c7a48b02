"""`make demo-reset`: stop what a demo left running, then forget all data of this folder."""

import shutil
import sys

from controlplane.config.embedded import postgres, valkey
from controlplane.config.embedded.places import places
from deploy.demo import leftovers


def main() -> int:
    """Stop and delete; running it again does nothing."""
    where = places()
    leftovers.end(where.var / "demo")
    valkey.stop()
    if (where.home / "pg18").exists():
        postgres.stop()
    shutil.rmtree(where.home, ignore_errors=True)
    shutil.rmtree(where.var, ignore_errors=True)
    sys.stdout.write(f"The demo's processes are stopped, and everything in {where.var} is gone.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
