"""What has to be simulated for the bands: independent tasks, so that processes can share them."""

from collections.abc import Callable

import msgspec

from routing.core.document import Plugin, Policy, Profile
from routing.pool.policies.memory import APPROXIMATE
from routing.simulator.reproduce.stages import StageRow, simulate
from routing.simulator.reproduce.users import simulate_users

GUIDE = "guide-perrate-precise07"
FOUR_ROUTERS = "kvwins-four-routers"
USERS = "guide-users"

PAIRS = {
    GUIDE: (GUIDE, GUIDE),
    "nxt-3v-granite": ("nxt-3v-granite-k8s", "nxt-3v-granite-llmd"),
    "nxt-h100nvl-granite-decode-heavy": (
        "nxt-h100nvl-granite-decode-heavy-k8s",
        "nxt-h100nvl-granite-decode-heavy-llmd",
    ),
    "nxt-mi325x-granite-decode-heavy": (
        "nxt-mi325x-granite-decode-heavy-k8s",
        "nxt-mi325x-granite-decode-heavy-llmd",
    ),
    "nxt-mi325x-sarvam-pd": ("nxt-mi325x-sarvam-mono", "nxt-mi325x-sarvam-4p4d"),
    "nxt-ab-sarvam10k": ("nxt-ab-sarvam10k-k8s", "nxt-ab-sarvam10k-llmd"),
    "nxt-h100nvl-sarvam": ("nxt-h100nvl-sarvam-k8s", "nxt-h100nvl-sarvam-llmd"),
    "nxt-ab-sarvam6k": ("nxt-ab-sarvam6k-k8s", "nxt-ab-sarvam6k-llmd"),
}
"""Results of the Service and of the router by case."""

LOAD_ONLY = Policy(
    name="weighted",
    profiles=(
        Profile(
            name="default",
            plugins=(
                Plugin(type="queue-scorer", weight=2),
                Plugin(type="kv-cache-utilization-scorer", weight=2),
            ),
        ),
    ),
)
"""The same weights without the prefix."""

APPROXIMATE_2025 = Policy(
    name="weighted",
    plugins=(
        Plugin(
            type=APPROXIMATE,
            parameters={
                "autoTune": False,
                "maxPrefixBlocksToMatch": 256,
                "lruCapacityPerServer": 2200,
            },
        ),
    ),
    profiles=(
        Profile(
            name="default",
            plugins=(
                Plugin(type="queue-scorer", weight=2),
                Plugin(type="kv-cache-utilization-scorer", weight=2),
                Plugin(type="prefix-cache-scorer", weight=3),
            ),
        ),
    ),
)
"""The approximate index as its authors set it when they compared four routers: blocks of 256
characters (64 tokens), 256 of a prompt and 2,200 of an endpoint, 141,000 tokens: less than half of
its cache. From github llm-d/llm-d-kv-cache-manager benchmarking/37-capacity/README.md at edb766fd,
of the same series; the settings of the run itself were not found."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One run; `key` is (case, router)."""

    case: str
    router: str

    @property
    def key(self) -> tuple[str, str]:
        """As in the results."""
        return self.case, self.router


def tasks() -> list[Task]:
    """All of them, long ones first."""
    pairs = [Task(case=case, router=side) for case in PAIRS for side in ("service", "router")]
    four = [Task(case=FOUR_ROUTERS, router=name) for name in ("approximate", "load-only")]
    users = [Task(case=USERS, router=side) for side in ("service", "router")]
    return pairs + four + users


def run_task(task: Task, *, should_stop: Callable[[], bool] = lambda: False) -> list[StageRow]:
    """Simulate it. Raises KeyError for a case that is not known."""
    if task.case == USERS:
        return simulate_users(task.router, should_stop=should_stop)
    if task.case == FOUR_ROUTERS:
        meant = {"approximate": APPROXIMATE_2025, "load-only": LOAD_ONLY}[task.router]
        rows = simulate(GUIDE, task.router, policy=meant, should_stop=should_stop)
        return [as_four_routers(row) for row in rows]
    service, router = PAIRS[task.case]
    result = service if task.router == "service" else router
    return simulate(result, task.router, should_stop=should_stop)


def as_four_routers(row: StageRow) -> StageRow:
    """The load of the guide stands for that of the comparison, whose ladder is not published."""
    return msgspec.structs.replace(
        row,
        case=FOUR_ROUTERS,
        published_requests_per_s=None,
        published_out_tok_s=None,
        published_ttft_mean_s=None,
        published_ttft_p50_s=None,
        published_ttft_p90_s=None,
    )
