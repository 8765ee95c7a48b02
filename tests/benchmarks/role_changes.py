"""Role changes on the testbed: does what follows lie in the band that the plan printed before?

    python -m tests.benchmarks.role_changes [--speed 0.5] [--only 6]

Engine processes of three vendors behind one router. For each change of a list the planner says, as
it does for an option of a plan, at which rate the new roles are judged and which goodput they keep
there, with the model's error. Then the engines whose role changes are started again with the new
one, a fresh router gets the document, and a load of that rate is sent. Measured as planned: of the
requests sent in a window after the pool has filled up, the share that met both targets, times the
rate. Rates and seconds are those of the engines' model. Writes `var/bench/role-changes.json`; ends
with 1 when less than 90 % lie in their bands. Lateness of a busy machine is not modelled: take
`--speed` and `--most-rate` down there, and look at `lag`.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import uvloop

from routing.planner.accuracy import MODEL_ERROR
from routing.planner.engines import Engine, engine_of
from routing.planner.placement import Share
from routing.planner.problem import Demand, Group, Target, Traffic
from routing.planner.sustain import Sustained
from routing.planner.trial import Outcome as Planned
from routing.planner.trial import Trial
from routing.testbed.load import run_load
from routing.testbed.load_plan import LoadSpec
from routing.testbed.load_report import Outcome, Targets
from tests.benchmarks import processes
from tests.benchmarks.fleet import KEY, MODEL, Fleet, Router

OUT = Path("var/bench/role-changes.json")
H100, MI325X, GAUDI3 = "nvidia-h100-nvl", "amd-mi325x", "intel-gaudi3"
ENGINES = {H100: 2, MI325X: 2, GAUDI3: 2}
LEAST_SHARE = 0.9
TARGET = Target()
FILLING_SECONDS, WINDOW_SECONDS = 5.0, 10.0
MOST_SECONDS = 600.0
"""For all changes; those that are left are not done, and the run fails."""
NARROWINGS = 2
"""Tries after the first kept rate, as a plan takes them for a comparison."""
SEED = 1


@dataclass(frozen=True, slots=True)
class Load:
    """Lengths in tokens."""

    name: str
    prompt: int
    shared: int
    groups: int
    output: int


LONG = Load("long prompts", 3000, 0, 0, 60)
SHORT = Load("short prompts", 600, 0, 0, 150)
SHARED = Load("shared prompts", 3000, 2400, 8, 60)

BOTH = {H100: "both", MI325X: "both", GAUDI3: "both"}
H_DECODES = {H100: "decode", MI325X: "prefill", GAUDI3: "prefill"}
H_PREFILLS = {H100: "prefill", MI325X: "decode", GAUDI3: "decode"}
G_PREFILLS = {H100: "decode", MI325X: "decode", GAUDI3: "prefill"}
G_DECODES = {H100: "prefill", MI325X: "prefill", GAUDI3: "decode"}
M_PREFILLS = {H100: "decode", MI325X: "prefill", GAUDI3: "decode"}
G_HELPS_H = {H100: "decode", MI325X: "both", GAUDI3: "prefill"}
M_HELPS_H = {H100: "decode", MI325X: "prefill", GAUDI3: "both"}

CHANGES: tuple[tuple[Mapping[str, str], Load, float], ...] = (
    (BOTH, LONG, 4.0), (BOTH, LONG, 60.0), (BOTH, SHORT, 6.0), (BOTH, SHARED, 12.0),
    (H_DECODES, LONG, 4.0), (H_DECODES, LONG, 60.0), (H_DECODES, SHORT, 6.0),
    (G_PREFILLS, LONG, 3.0), (G_PREFILLS, LONG, 60.0), (G_PREFILLS, SHARED, 10.0),
    (H_PREFILLS, LONG, 5.0), (H_PREFILLS, LONG, 60.0), (H_PREFILLS, SHORT, 8.0),
    (M_PREFILLS, LONG, 60.0), (M_PREFILLS, SHARED, 6.0), (M_PREFILLS, SHORT, 10.0),
    (G_DECODES, LONG, 4.0), (G_DECODES, LONG, 60.0),
    (G_HELPS_H, LONG, 60.0), (G_HELPS_H, SHARED, 6.0), (G_HELPS_H, SHORT, 8.0),
    (M_HELPS_H, LONG, 60.0), (M_HELPS_H, SHORT, 6.0), (BOTH, SHORT, 12.0),
)  # fmt: skip
"""Roles after the change, load, and the rate that is offered to the planner; 60 requests/s are more
than any of them keeps, so that the plan is about its limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One change: goodput in requests/s of the model."""

    roles: Mapping[str, str]
    load: str
    offered_rps: float
    rate_rps: float
    planned: float
    low: float
    high: float
    measured: float | None
    sent: int
    failed: int
    ttft_p90: float | None
    tpot_p90: float | None
    """Measured, seconds of the model."""
    speed: float
    lag_seconds: float
    """How late the generator was at worst."""

    @property
    def is_inside(self) -> bool:
        """Measured within the band; without a measurement it is not."""
        return self.measured is not None and self.low <= self.measured <= self.high


def main() -> None:
    """Plan, change, measure, judge, write."""
    options = _parser().parse_args()
    changes = CHANGES[: options.only]
    plans = [_planned(roles, load, rate) for roles, load, rate in changes]
    began, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="roles-") as folder:
        pool = Fleet(
            folder=Path(folder), speed=options.speed, engines=ENGINES, roles=dict(changes[0][0])
        )
        with pool:
            for number, (change, plan) in enumerate(zip(changes, plans, strict=True)):
                if time.monotonic() - began > options.seconds:
                    break
                speed = min(options.speed, options.most_rate / plan.rate_rps)
                row = _change(pool, number, change, plan, round(speed, 2))
                rows.append(row)
                print(_line(row), flush=True)
    inside = sum(row.is_inside for row in rows)
    share = inside / len(changes)
    print(f"{inside} of {len(changes)} changes in their band ({share:.0%}); {len(rows)} were done")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    written = {
        "error": MODEL_ERROR.throughput, "options": vars(options), "share": share,
        "rows": [asdict(row) | {"is_inside": row.is_inside} for row in rows],
    }  # fmt: skip
    OUT.write_text(json.dumps(written, indent=1) + "\n")
    sys.exit(share < LEAST_SHARE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", type=float, default=1.0, help="model seconds per second")
    parser.add_argument(
        "--most-rate", type=float, default=30.0, help="requests per real second, by less speed"
    )
    parser.add_argument("--only", type=int, default=len(CHANGES), help="the first so many")
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS, help="for all of them")
    return parser


def _planned(roles: Mapping[str, str], load: Load, rate: float) -> Planned:
    """As a plan finds the figures of an option."""
    demand = Demand(
        model=MODEL,
        target=TARGET,
        traffic=Traffic(
            rate_qps=rate, prompt_tokens=load.prompt, output_tokens=load.output,
            shared_tokens=load.shared, groups=load.groups,
        ),
    )  # fmt: skip
    found = Sustained(Trial(_placement(roles), _engines(demand), demand), seed=SEED, requests=800)
    found.begin()
    for _again in range(NARROWINGS):
        if found.spread > 1:
            found.narrow()
    return found.best


def _engines(demand: Demand) -> dict[str, Engine]:
    found = {}
    for name, count in ENGINES.items():
        engine = engine_of(Group(name=name, accelerator=name, nodes=count), demand, 1)
        if not isinstance(engine, Engine):
            raise TypeError(f"{MODEL} does not run on {name}: {engine}")
        found[name] = engine
    return found


def _placement(roles: Mapping[str, str]) -> tuple[Share, ...]:
    return tuple(
        Share(
            group=name,
            width=1,
            prefill=count if roles[name] == "prefill" else 0,
            decode=count if roles[name] == "decode" else 0,
            both=count if roles[name] == "both" else 0,
        )
        for name, count in ENGINES.items()
    )


def _change(
    pool: Fleet,
    number: int,
    change: tuple[Mapping[str, str], Load, float],
    plan: Planned,
    speed: float,
) -> Row:
    roles, load, offered = change
    _assign(pool, roles, speed)
    router = pool.start_router(f"roles-{number}")
    pool.push(
        router,
        slo={
            "ttft_seconds": TARGET.ttft_seconds / speed,
            "tpot_seconds": TARGET.tpot_seconds / speed,
        },
        policy={"name": "consort"},
    )
    ended, lag = uvloop.run(_sent(_spec(router, load, plan.rate_rps, number, speed)))
    router.process.terminate()
    router.process.wait(15)
    window = _window(ended, speed)
    targets = Targets(TARGET.ttft_seconds / speed, TARGET.tpot_seconds / speed)
    good = sum(one.ok and targets.met_by(one) for one in window)
    band = MODEL_ERROR.throughput
    return Row(
        roles=dict(roles),
        load=load.name,
        offered_rps=offered,
        rate_rps=plan.rate_rps,
        planned=plan.goodput_rps,
        low=plan.goodput_rps * (1 - band),
        high=plan.goodput_rps * (1 + band),
        measured=plan.rate_rps * good / len(window) if window else None,
        sent=len(window),
        failed=sum(not one.ok for one in window),
        ttft_p90=_p90([one.ttft for one in window], speed),
        tpot_p90=_p90([one.tpot for one in window], speed),
        speed=speed,
        lag_seconds=lag,
    )


def _assign(pool: Fleet, roles: Mapping[str, str], speed: float) -> None:
    """Start those again that change, as a role is given at the start; all caches are empty then."""
    is_as_fast = speed == pool.speed
    pool.roles, pool.speed = dict(roles), speed
    for engine in pool.running:
        if is_as_fast and engine.role == roles[engine.accelerator]:
            processes.post(engine.port, "/reset_prefix_cache", b"")
        else:
            pool.kill_engine(engine)
            pool.restart_engine(engine)
            engine.role = roles[engine.accelerator]


def _spec(router: Router, load: Load, rate: float, number: int, speed: float) -> LoadSpec:
    return LoadSpec(
        urls=(router.url,), key=KEY, model=MODEL, rate=rate * speed,
        duration_seconds=(FILLING_SECONDS + WINDOW_SECONDS) / speed,
        groups=load.groups or 1, prompts_per_group=100_000,
        system_tokens=load.shared, question_tokens=load.prompt - load.shared,
        output_tokens=load.output, seed=SEED + number, timeout_seconds=60.0,
    )  # fmt: skip


async def _sent(spec: LoadSpec) -> tuple[list[Outcome], float]:
    ended: list[Outcome] = []
    report = await run_load(spec, ended=ended.append)
    return ended, report.max_send_lag_seconds


def _window(ended: Sequence[Outcome], speed: float) -> list[Outcome]:
    """Sent after the pool has filled up."""
    if not ended:
        return []
    begin = min(one.sent_at for one in ended) + FILLING_SECONDS / speed
    return [one for one in ended if one.sent_at >= begin]


def _p90(values: Sequence[float | None], speed: float) -> float | None:
    known = sorted(value * speed for value in values if value is not None)
    return known[int(0.9 * (len(known) - 1))] if known else None


def _line(row: Row) -> str:
    letters: dict[str, Any] = {"prefill": "P", "decode": "D", "both": "B"}
    roles = " ".join(f"{name.split('-')[1]}:{letters[role]}" for name, role in row.roles.items())
    measured, ttft, tpot = (
        "no data" if value is None else f"{value:.3f}"
        for value in (row.measured, row.ttft_p90, row.tpot_p90)
    )
    return (
        f"{'in ' if row.is_inside else 'OUT'} {roles:28} {row.load:14} "
        f"offered {row.offered_rps:5.1f}"
        f" at {row.rate_rps:6.2f}: planned {row.planned:6.2f} ({row.low:.2f} to {row.high:.2f}),"
        f" measured {measured} of {row.sent} sent, {row.failed} failed,"
        f" seconds of TTFT p90 {ttft}, of TPOT p90 {tpot},"
        f" speed {row.speed}, lag {row.lag_seconds:.3f} s"
    )


if __name__ == "__main__":
    main()
