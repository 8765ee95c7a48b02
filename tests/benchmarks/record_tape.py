"""Records a stretch of the testbed for the parity tests.

    python -m tests.benchmarks.record_tape [--policy consort] [--rate 18]

Six simulated engines of three vendors as processes, with cache events and known tokens;
the router runs in this process and writes down what it is told. Writes
`tests/routing/simulator/tapes/POLICY.jsonl.xz` and says what the simulator makes of it. Record
again when choices were changed on purpose: tests compare with what is on the tape. The one of
llm-d-precise is made with `--rate 9`: with more load its luck decides.
"""

import argparse
import asyncio
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import uvloop

from routing.core.document import parse_document
from routing.servers import clock
from routing.servers.app import Router, RouterOptions
from routing.servers.documents import LoadedPool
from routing.simulator.profiles import Profile, load_profile
from routing.testbed.load import run_load
from routing.testbed.load_plan import LoadSpec, request_body
from tests.benchmarks.fleet import KEY, MODEL, TOKEN, Fleet
from tests.benchmarks.tapes import arrivals, tape
from tests.benchmarks.tapes.recorder import TapedRouter
from tests.benchmarks.tapes.replayer import replay

OUT = Path("tests/routing/simulator/tapes")
ENGINES = {"nvidia-h100-nvl": 2, "amd-mi325x": 2, "intel-gaudi3": 2}
KV_TOKENS = 6_144
"""Of each engine: 9 of these prompts, so that caches are full and evict."""
SEED = 11
EVENTS = ("--kv-events-port", "0", "--kv-replay-port", "0", "--kv-tokens", str(KV_TOKENS))
SETTLE_SECONDS = 2.0
"""For the first readings and the connections of event streams."""


def main() -> None:
    """Record, write, compare."""
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="tape-") as folder:
        pool = Fleet(
            folder=Path(folder), engines=ENGINES, speed=options.speed, engine_options=EVENTS
        )
        with pool:
            document = _document(pool, options.policy)
            router = uvloop.run(_record(Path(folder), document, options))
    header = tape.Header(
        document=document, seed=SEED, began=router.reel.began,
        profiles=_profiles(options.speed),
    )  # fmt: skip
    path = options.out / f"{options.policy}.jsonl.xz"
    path.parent.mkdir(parents=True, exist_ok=True)
    tape.write(path, header, router.reel.lines)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB, {len(router.reel.lines)} lines")
    _compare(tape.read(path))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--policy", default="consort")
    add("--requests", type=int, default=300)
    add("--rate", type=float, default=18.0, help="requests per second")
    add("--speed", type=float, default=0.08, help="model seconds per second")
    add("--seed", type=int, default=7, help="of the load")
    add("--out", type=Path, default=OUT, help="folder")
    return parser


def _document(pool: Fleet, policy: str) -> dict[str, Any]:
    document = pool.document(1, policy={"name": policy}, prompt_identity={"mode": "engine"})
    document["endpoints"] = [
        one | {"kv_capacity_tokens": KV_TOKENS} for one in document["endpoints"]
    ]
    return document


def _profiles(speed: float) -> dict[str, Profile]:
    return {
        name: replace(load_profile(name, MODEL).slower(1 / speed), kv_tokens=KV_TOKENS)
        for name in ENGINES
    }


async def _record(
    folder: Path, document: dict[str, Any], options: argparse.Namespace
) -> TapedRouter:
    server = Router(
        RouterOptions(name="tape", state_dir=folder / "tape", admin_token=TOKEN.encode())
    )
    await server.start()
    try:
        raw = orjson.dumps(document)
        loaded = server.state.directory.apply(raw)
        # Nothing has run since: whoever follows the document finds this router.
        loaded.router = router = TapedRouter(parse_document(raw), seed=SEED, now=clock.monotonic())
        spec = LoadSpec(
            urls=(f"http://127.0.0.1:{server.port}",), key=KEY, model=MODEL, rate=options.rate,
            requests=options.requests, groups=24, prompts_per_group=3, system_tokens=480,
            question_tokens=160, output_tokens=40, seed=options.seed, timeout_seconds=120.0,
            api="completions",
        )  # fmt: skip
        await asyncio.sleep(SETTLE_SECONDS)
        await _read_prompts(spec, loaded)
        await asyncio.sleep(SETTLE_SECONDS)
        report = await run_load(spec)
        print(f"sent {report.sent}, failed {report.failed}", file=sys.stderr)
    finally:
        await server.stop()
    return router


async def _read_prompts(spec: LoadSpec, pool: LoadedPool) -> None:
    """Wait until the router knows the tokens of all prompts, which engines tell it."""
    missing = {request_body(spec, index) for index in range(spec.requests or 0)}
    async with asyncio.timeout(60):
        while missing:
            missing = {body for body in missing if not _is_read(pool, spec.path, body)}
            await asyncio.sleep(0.2)


def _is_read(pool: LoadedPool, path: str, body: bytes) -> bool:
    if pool.reader is None:
        return False
    known = pool.reader.read(path, body, None, adapter=None, salt=None)
    return known.degraded is None and not known.unknown_bytes


def _compare(recorded: tape.Tape) -> None:
    picks = replay(recorded)
    same = sum(pick.recorded == pick.again for pick in picks)
    lag = arrivals.event_lag(recorded)
    print(f"the machine added up to {1000 * lag:.0f} ms to cache events (p90)")
    print(f"decided again: {same} of {len(picks)} picks are the same")
    real, made = arrivals.recorded_rides(recorded), arrivals.simulated_rides(recorded)
    print(f"simulated from arrivals: {arrivals.equal_share(real, made):.1%} of picks are the same")
    before, after = arrivals.figures_of(real), arrivals.figures_of(made)
    for name, error in after.errors(before).items():
        was, now = getattr(before, name), getattr(after, name)
        print(f"  {name:20} testbed {was:9.4f}  simulated {now:9.4f}  {error:+.1%}")


if __name__ == "__main__":
    main()
