"""A fake cluster that listens until it is interrupted.

    python -m tests.kubernetes.fake --port 8443 --nodes 1000 --engines 2000

Plain HTTP on loopback, for trying the console and for measurements. `--credentials FOLDER` writes
the folder that an installation keeps for a cluster.
"""

import argparse
import signal
import sys
import threading
import time
from pathlib import Path

from tests.kubernetes.fake.cluster import FakeCluster
from tests.kubernetes.fake.fill import fill


def main() -> int:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8443)
    parser.add_argument("--nodes", type=int, default=3, help="of several vendors, in turn")
    parser.add_argument("--engines", type=int, default=0, help="Deployments that run already")
    parser.add_argument("--slices", action="store_true", help="ResourceSlices for NVIDIA nodes")
    parser.add_argument("--missing", action="append", default=[], help="a kind or family")
    parser.add_argument("--token", help="callers must show it")
    parser.add_argument("--credentials", type=Path, help="a folder to write")
    options = parser.parse_args()
    cluster = FakeCluster(
        port=options.port, missing=options.missing, token=options.token, working=True
    )
    began = time.perf_counter()
    fill(cluster, nodes=options.nodes, engines=options.engines, slices=options.slices)
    if options.credentials:
        cluster.write_credentials(options.credentials)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with cluster:
        seconds = time.perf_counter() - began
        sys.stdout.write(f"{cluster.url} with {options.nodes} nodes and {options.engines} engines")
        sys.stdout.write(f", filled in {seconds:.1f} s\n")
        sys.stdout.flush()
        ended.wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
