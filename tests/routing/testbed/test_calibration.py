"""TPOT of replayed stages against the published single-pool tables, in virtual time.

Rows: granite-4.1-8b behind a Kubernetes Service (random choice), mean TPOT a stage, from the NxtGen
benchmark repository (praveingk/llmd-benchmarking-nxtgen, commit 6ae68aad).
"""

from array import array
from dataclasses import dataclass

import numpy as np
import pytest

from routing.testbed.scheduler import EngineModel, run_until_idle
from routing.testbed.sequence import Sequence
from tests.routing.testbed.helpers import make_model, make_sequence

GROUPS, QUESTIONS = 150, 5


@dataclass(frozen=True)
class Stage:
    """One published stage."""

    accelerator: str
    replicas: int
    system: int
    question: int
    output: int
    rate: float
    seconds: float
    tpot_ms: float


@pytest.mark.parametrize(
    "stage",
    [
        Stage("nvidia-h100-nvl", 4, 800, 249, 3985, 3.0, 30, 11.0),
        Stage("nvidia-h100-nvl", 4, 800, 249, 3985, 12.0, 30, 24.4),
        Stage("amd-mi325x", 8, 800, 249, 3985, 3.0, 30, 7.5),
        Stage("amd-mi325x", 8, 800, 249, 3985, 12.0, 30, 11.9),
        Stage("intel-gaudi3", 8, 6000, 1545, 997, 3.0, 30, 17.8),
        Stage("intel-gaudi3", 8, 6000, 1545, 997, 8.0, 30, 42.7),
    ],
    ids=lambda stage: f"{stage.accelerator}-{stage.rate:g}-per-second",
)
def test_tpot_is_within_a_quarter_of_the_published_stage(stage: Stage) -> None:
    finished = _replay(stage)

    mean = sum((s.last - (s.first or 0)) / (s.output - 1) for s in finished) / len(finished)
    assert len(finished) == int(stage.rate * stage.seconds)
    assert mean * 1e3 == pytest.approx(stage.tpot_ms, rel=0.25)


def _replay(stage: Stage) -> list[Sequence]:
    """Poisson arrivals, each on a random engine; all engines have seen every system prompt."""
    rng = np.random.default_rng(7)
    count = int(stage.rate * stage.seconds)
    arrivals = np.cumsum(rng.exponential(1 / stage.rate, count))
    systems = [array("I", rng.integers(0, 2**32, stage.system)) for _ in range(GROUPS)]
    queues: list[list[Sequence]] = [[] for _ in range(stage.replicas)]
    for arrived in arrivals:
        group, question = int(rng.integers(GROUPS)), int(rng.integers(QUESTIONS))
        asked = array("I", [group * QUESTIONS + question] * stage.question)
        prompt = systems[group] + asked
        queues[int(rng.integers(stage.replicas))].append(
            make_sequence(prompt, output=stage.output, arrived=float(arrived))
        )
    finished: list[Sequence] = []
    for queue in queues:
        model = make_model(accelerator=stage.accelerator)
        for system in systems:
            model.add(make_sequence(system, output=1))
        run_until_idle(model, -1e6)
        finished += _serve(model, queue)
    return finished


def _serve(model: EngineModel, queue: list[Sequence]) -> list[Sequence]:
    now, sent = 0.0, 0
    finished: list[Sequence] = []
    while len(finished) < len(queue):
        while sent < len(queue) and queue[sent].arrived <= now:
            model.add(queue[sent])
            sent += 1
        seconds = model.begin_step(now)
        if seconds is None:
            now = queue[sent].arrived
            continue
        now += seconds
        finished += [s for s in model.finish_step(now) if s.finish_reason is not None]
    return finished
