"""The pause before what a target refused is asked again."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.serving.models import Workload
from controlplane.serving.services import refusals

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def refused(times: int, age: float, *, generation: int = 3) -> Workload:
    return Workload(
        generation=3, refused_generation=generation, refusals=times,
        refused_at=NOW - timedelta(seconds=age),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("times", "age", "waits"),
    [
        (1, 4.9, True), (1, 5.1, False), (2, 9.9, True), (3, 20.1, False), (9, 299.0, True),
        (9, 301.0, False), (10**6, 301.0, False),
    ],
)  # fmt: skip
def test_the_pause_doubles_up_to_five_minutes(times: int, age: float, waits: bool) -> None:
    assert refusals.still_waits(refused(times, age), NOW) is waits


def test_another_wish_does_not_wait() -> None:
    before = refused(9, 0.0, generation=2)

    assert not refusals.is_refused(before)
    assert not refusals.still_waits(before, NOW)
