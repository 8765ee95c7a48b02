"""Drawing from workloads, and looking at what came."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from routing.simulator.requests import Arrival, Stage, Workload
from routing.simulator.workloads.open_loop import ladder
from routing.simulator.workloads.shared_prefix import SharedPrefix

STAGES: tuple[Stage, ...] = ladder((20, 10), (40, 5))


def drawn(workload: Workload, stage: int = 0, seed: int = 1) -> list[Arrival]:
    """The arrivals of a stage."""
    return list(workload.arrivals(stage, np.random.default_rng(seed)))


def chain(arrival: Arrival) -> Iterator[Arrival]:
    """A request and those that follow it."""
    following: Arrival | None = arrival
    while following is not None:
        yield following
        following = following.then


def shared_blocks(one: Arrival, other: Arrival) -> int:
    """Leading blocks that two prompts have in common."""
    pairs = zip(one.prompt.keys, other.prompt.keys, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(one.prompt.keys))


def small(**changes: Any) -> SharedPrefix:
    """Three groups of two prompts, of 64-token blocks."""
    fields: dict[str, Any] = {
        "id": "small",
        "stages": STAGES,
        "groups": 3,
        "prompts": 2,
        "system_tokens": 640,
        "question_tokens": 128,
        "output_tokens": 100,
    }
    return SharedPrefix(**(fields | changes))
