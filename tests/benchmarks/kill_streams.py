"""`kill -9` of an engine in the middle of 200 streams: with `continue` on, none may be lost.

    python -m tests.benchmarks.kill_streams [--streams 200] [--engines 4] [--kills 1]

Real processes on loopback. Every answer is compared with the text that its prompt must give at
temperature 0. The outcome goes to `var/bench/kill-streams.json`; the exit status is 1 when a stream
was lost or its text differs.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import uvloop

from tests.benchmarks.fleet import Fleet, Router, admin
from tests.benchmarks.soak import Tally, one_request

OUT = Path("var/bench/kill-streams.json")
LENGTH = 400
SPREAD_SECONDS, FIRST_KILL_SECONDS, BETWEEN_KILLS_SECONDS = 1.0, 2.5, 1.0


class _Stays(SimpleNamespace):
    """Stands in for the soak's random numbers: long answers, and nobody leaves."""

    def integers(self, *_: int) -> int:
        return LENGTH

    def random(self) -> float:
        return 1.0


async def run(pool: Fleet, router: Router, options: argparse.Namespace) -> Tally:
    """All streams at once, and the kills while they run."""
    tally, rng = Tally(), np.random.default_rng(options.seed)

    async def client(number: int) -> None:
        await asyncio.sleep(float(rng.random()) * SPREAD_SECONDS)
        await one_request(router, number, tally, _Stays())  # type: ignore[arg-type]

    asking = [asyncio.create_task(client(number)) for number in range(options.streams)]
    await asyncio.sleep(FIRST_KILL_SECONDS)
    for engine in pool.running[: options.kills]:
        pool.kill_engine(engine)
        tally.kills += 1
        await asyncio.sleep(BETWEEN_KILLS_SECONDS)
    await asyncio.gather(*asking)
    return tally


def main() -> int:
    """Run it and say how it went."""
    options = _options()
    limits = {"streams_continue": True, "attempts": 3}
    with tempfile.TemporaryDirectory() as folder:
        engines = {"amd-mi325x": options.engines}
        with Fleet(folder=Path(folder), engines=engines, changes={"limits": limits}) as pool:
            router = pool.start_router("r1")
            pool.push(router, policy={"name": "round-robin"})
            tally = uvloop.run(run(pool, router, options))
            state = admin(router, "GET", "/admin/state")
            page = _continued(router)
    outcome = {
        "streams": options.streams,
        "kills": tally.kills,
        "ends": dict(tally.ends),
        "wrong": tally.wrong,
        "continued": page,
        "failed": state["requests"]["failed"],
        "leases_open": state["leases_open"],
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(outcome, indent=2) + "\n")
    print(json.dumps(outcome))
    is_good = tally.ends == {"complete": options.streams} and not state["leases_open"]
    return 0 if is_good and page else 1


def _continued(router: Router) -> int:
    """Streams that went on elsewhere, as the router counts them."""
    url = f"http://127.0.0.1:{router.admin_port}/metrics"
    with urllib.request.urlopen(url, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    name = "consort_continued_streams_total{"
    return int(sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kill_streams", description=__doc__)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--engines", type=int, default=4)
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
