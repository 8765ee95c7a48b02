"""The cases of the race: a workload of the catalogue on a fleet, at several rates in a row.

Each measured stage of a case is a row. A first stage warms the caches and the router's knowledge of
speeds up, as the published ladders do, and caches stay warm between stages. Traces and clients in a
closed loop set their own pace; they start cold.

Rates lie below, around and above the knee of the fleet, where policies differ. Ladders are shorter
than the published ones, so that a race of all policies with three seeds takes less than an hour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from routing.simulator.race.fleets import FLEETS, SPLITS, RaceFleet
from routing.simulator.workloads.building import build
from routing.simulator.workloads.open_loop import Traffic

QUICK_SECONDS = 3.0
QUICK_REQUESTS = 100
"""Of a stage in a quick race, which shows that everything runs and judges nothing."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Times in seconds, rates in requests per second."""

    workload: str
    """In the catalogue."""
    fleet: str
    rates: tuple[float, ...] = ()
    """Of the measured stages; () where the workload sets its own pace."""
    warm_up_qps: float = 0.0
    warm_up_seconds: float = 15.0
    seconds: float = 30.0
    changes: Mapping[str, Any] = field(default_factory=dict)
    """To the catalogue's entry."""
    ttft_seconds: float = 3.0
    tpot_seconds: float = 0.08
    """What counts as goodput."""

    @property
    def id(self) -> str:
        """As on the command line."""
        return f"{self.workload}@{self.fleet}"

    @property
    def its_fleet(self) -> RaceFleet:
        """The fleet by its name."""
        return FLEETS[self.fleet]

    def its_workload(self, *, is_quick: bool = False) -> Traffic:
        """The workload with the stages of this case."""
        changed = {"id": self.workload, **self.changes}
        if self.rates:
            changed |= {"stages": self._stages(is_quick=is_quick), "warm_up_stages": 1}
        elif is_quick:
            changed |= _shortened(self.changes)
        return build(changed).workload

    def _stages(self, *, is_quick: bool) -> list[list[float]]:
        steps = [[self.warm_up_qps, self.warm_up_seconds]]
        steps += [[rate, self.seconds] for rate in self.rates]
        return [[rate, QUICK_SECONDS] for rate, _ in steps[:2]] if is_quick else steps


def _shortened(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {"limit": QUICK_REQUESTS} if "speed" in changes else {"requests_per_client": 2}


_ALL = (
    Case(workload="nxt-granite-6k", fleet="nxt-3vendor", warm_up_qps=20, rates=(40, 70, 85)),
    Case(workload="nxt-granite-6k", fleet="nxt-ab", warm_up_qps=15, rates=(25, 50)),
    Case(workload="nxt-granite-6k", fleet="nxt-4xh100nvl", warm_up_qps=8, rates=(10, 20)),
    Case(workload="nxt-granite-6k", fleet="homogeneous-8xmi325x", warm_up_qps=10, rates=(20, 40)),
    Case(workload="nxt-granite-6k", fleet="spread-4x", warm_up_qps=10, rates=(15, 30)),
    Case(workload="nxt-granite-6k", fleet="one-sick", warm_up_qps=10, rates=(20, 35)),
    Case(workload="nxt-granite-6k", fleet="one-lossy", warm_up_qps=10, rates=(30,)),
    Case(workload="nxt-granite-6k", fleet="one-dies", warm_up_qps=10, rates=(15, 25)),
    Case(workload="nxt-granite-6k", fleet="pd-3vendor", warm_up_qps=20, rates=(40, 70)),
    Case(workload="guide-6k", fleet="guide-16xh100", warm_up_qps=15, rates=(20, 40)),
    Case(workload="nxt-sarvam-10k", fleet="nxt-ab-sarvam", warm_up_qps=15, rates=(50, 100)),
    Case(workload="nxt-sarvam-6k", fleet="nxt-ab-sarvam", warm_up_qps=15, rates=(30, 60)),
    Case(workload="nxt-pd-sarvam", fleet="pd-4p4d-sarvam", warm_up_qps=10, rates=(25, 50)),
    Case(workload="nxt-decode-heavy", fleet="homogeneous-8xmi325x", warm_up_qps=5, rates=(12, 25)),
    Case(workload="tier-cpu-30k", fleet="homogeneous-8xmi325x",
         changes={"requests_per_client": 10}),
    Case(workload="pd-5k", fleet="pd-4p4d-mi325x", warm_up_qps=10, rates=(15, 25)),
    Case(workload="wideep-1k", fleet="nxt-3vendor", warm_up_qps=20, rates=(60, 100)),
    Case(workload="mooncake-conversation", fleet="nxt-3vendor", changes={"speed": 8}),
    Case(workload="mooncake-synthetic", fleet="homogeneous-8xmi325x", changes={"speed": 4}),
    Case(workload="azure-conv", fleet="spread-4x", changes={"speed": 8}),
    Case(workload="azure-code", fleet="nxt-3vendor", changes={"speed": 25}),
    Case(workload="agents", fleet="nxt-3vendor", warm_up_qps=20, rates=(40, 80)),
    Case(workload="agents", fleet="one-sick", warm_up_qps=10, rates=(20,)),
    Case(workload="hot-prefix", fleet="homogeneous-8xmi325x", warm_up_qps=20, rates=(50,)),
    Case(workload="hot-prefix", fleet="nxt-3vendor", warm_up_qps=20, rates=(80,)),
    Case(workload="no-sharing", fleet="nxt-3vendor", warm_up_qps=10, rates=(30, 50)),
    Case(workload="no-sharing", fleet="spread-4x", warm_up_qps=5, rates=(15,)),
    Case(workload="mixed-lengths", fleet="nxt-3vendor", warm_up_qps=20, rates=(40, 70)),
    Case(workload="mixed-lengths", fleet="homogeneous-8xmi325x", warm_up_qps=10, rates=(30,)),
)  # fmt: skip

CASES: Mapping[str, Case] = MappingProxyType({case.id: case for case in _ALL})

_SPLIT_TRAFFIC: tuple[dict[str, Any], ...] = (
    {"workload": "nxt-granite-6k", "warm_up_qps": 20, "rates": (40, 70)},
    {"workload": "nxt-decode-heavy", "warm_up_qps": 10, "rates": (30, 50)},
    {"workload": "pd-5k", "warm_up_qps": 15, "rates": (30, 50)},
    {"workload": "agents", "warm_up_qps": 20, "rates": (60, 100)},
)
_SPLIT_SECONDS = 60.0
"""Longer, because a fleet without its slowest endpoints drains a short stage sooner."""
_SPLIT = [
    Case(fleet=split, seconds=_SPLIT_SECONDS, **traffic)
    for traffic in _SPLIT_TRAFFIC
    for split in SPLITS
]

SPLIT_CASES: Mapping[str, Case] = MappingProxyType({f"split:{case.id}": case for case in _SPLIT})
"""Four workloads on the same endpoints in different roles; see `roles`."""


def case_of(name: str) -> Case:
    """Of the race or of the splits. Raises KeyError."""
    return CASES[name] if name in CASES else SPLIT_CASES[name]


def chosen(names: Sequence[str]) -> list[Case]:
    """The cases of these names, all without any. Raises ValueError naming what is known."""
    for name in names:
        if name not in CASES:
            raise ValueError(f"No case '{name}'. Known are: {', '.join(CASES)}.")
    return [CASES[name] for name in names] if names else list(CASES.values())
