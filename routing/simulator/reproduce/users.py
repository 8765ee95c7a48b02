"""How many users a pool serves: each asks 3 times a minute for 1,000 tokens and reads 50 a second.

The claim "200 users against 20 under an objective" states neither the objective nor how it was
measured. Read here: TTFT p90 of at most 1 s, and tokens that come at 50 a second, on the load of
`guide-6k`, one stage a number of users, sent at random times.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from routing.simulator.calibration.routers import router_of
from routing.simulator.fleet import build_fleet
from routing.simulator.published.load import PublishedLoad
from routing.simulator.published.running import TIMEOUT_SECONDS, patient
from routing.simulator.published.tables import members, table, traffic
from routing.simulator.report.stage import stage_reports
from routing.simulator.reproduce.stages import SEED, StageRow, row_of
from routing.simulator.requests import Stage
from routing.simulator.scenario import Scenario
from routing.simulator.simulation import Simulation

LEVELS = (5, 10, 15, 20, 25, 30, 40, 60, 80, 100, 120, 140, 160, 180, 200, 220, 240, 250, 260, 280)
RATE_PER_USER = 3 / 60
SECONDS_PER_TOKEN = 1 / 50
TTFT_P90_SECONDS = 1.0
STAGE_SECONDS = 60.0
"""20 users send 60 requests in it."""
RESULT = "guide-perrate-precise07"


def simulate_users(
    router: str, *, should_stop: Callable[[], bool] = lambda: False
) -> list[StageRow]:
    """One row a number of users (`rate_qps / RATE_PER_USER`), after the guide's warm-up."""
    used = table(RESULT, "service" if router == "service" else "llm-d")
    warm_up = [stage for stage in used.stages if stage.is_warm_up]
    stages = (
        *warm_up,
        *(
            Stage(name=f"{users} users", rate_qps=users * RATE_PER_USER, seconds=STAGE_SECONDS)
            for users in LEVELS
        ),
    )
    fleet = build_fleet(members(used.fleet), model=used.model)
    run = Simulation(
        Scenario(
            document=patient(fleet.document),
            profiles=fleet.profiles,
            workload=PublishedLoad(used.workload, traffic(used.workload), stages),
            policy=used.policy,
            surroundings=replace(
                router_of(
                    used.source if router == "router" else "service",
                    endpoints=len(fleet.document.endpoints),
                ),
                timeout_seconds=TIMEOUT_SECONDS,
                has_events=used.policy == "llm-d-precise",
            ),
        ),
        seed=SEED,
    )
    run.run(should_stop=should_stop)
    counted = traffic(used.workload).counted_output_tokens
    reports = stage_reports(run)
    return [row_of("guide-users", router, used.policy, None, one, counted) for one in reports]


def users_served(rows: Sequence[StageRow]) -> float:
    """The largest number such that it and all smaller ones met the objective; 0 if none did."""
    most = 0.0
    for row in rows:
        if row.is_warm_up:
            continue
        if not _is_met(row):
            break
        most = row.rate_qps / RATE_PER_USER
    return most


def ttft_at(rows: Sequence[StageRow], users: float) -> float | None:
    """Median time to the first token with so many users."""
    for row in rows:
        if not row.is_warm_up and abs(row.rate_qps - users * RATE_PER_USER) < 1e-9:
            return row.ttft_p50_s
    return None


def _is_met(row: StageRow) -> bool:
    return (
        row.ttft_p90_s is not None
        and row.tpot_mean_ms is not None
        and row.ttft_p90_s <= TTFT_P90_SECONDS
        and row.tpot_mean_ms <= 1000 * SECONDS_PER_TOKEN
    )
