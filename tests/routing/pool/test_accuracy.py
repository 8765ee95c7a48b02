"""Predicted times against engines that are the testbed's, step for step (see
`tests/routing/simulator/engine/test_parity_with_testbed.py`)."""

import numpy as np
import pytest

from routing.simulator.fleet import Member
from tests.routing.pool.simulated import GAUDI, H100, MI325X, Load, Outcome, outcome_of

FLEET = (
    Member(accelerator=H100, count=2),
    Member(accelerator=MI325X, count=3),
    Member(accelerator=GAUDI, count=3),
)
CLASSES = [member.accelerator for member in FLEET]
TAUGHT = 200
"""Requests that are answered before predictions count."""


def run(*, is_streamed: bool) -> Outcome:
    """Prompts of a shared part and one of their own, at a steady rate; the second stage counts."""
    load = Load(
        groups=40,
        prompts=0,
        system_tokens=1500,
        question_tokens=700,
        stages=((20.0, 1.1 * TAUGHT / 20.0), (20.0, 12.0)),
        is_streamed=is_streamed,
    )
    # A router counts tokens as they come, and there is no pause between the stages.
    return outcome_of("consort", load, fleet=FLEET, progress_seconds=0.1, stage_gap_seconds=0.0)


def error(outcome: Outcome, accelerator: str, phase: str) -> float:
    own = outcome.of_class(accelerator)
    seen = np.array([getattr(course, phase) for course in own])
    predicted = np.array([getattr(course, f"predicted_{phase}") for course in own])
    return float(np.mean(np.abs(predicted - seen) / seen))


@pytest.fixture(scope="module")
def streamed() -> Outcome:
    return run(is_streamed=True)


@pytest.mark.parametrize("accelerator", CLASSES)
@pytest.mark.parametrize("phase", ["ttft", "tpot"])
def test_times_are_predicted_within_a_tenth_per_class_after_two_hundred_requests(
    streamed: Outcome, accelerator: str, phase: str
) -> None:
    assert error(streamed, accelerator, phase) < 0.10


def test_answers_without_a_stream_teach_nearly_as_well() -> None:
    outcome = run(is_streamed=False)

    for accelerator in CLASSES:
        assert error(outcome, accelerator, "tpot") < 0.12
        assert error(outcome, accelerator, "ttft") < 0.25
