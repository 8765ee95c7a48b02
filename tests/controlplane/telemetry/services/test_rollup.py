"""Hours are recomputed from samples; coverage says how much of an hour is known."""

from datetime import timedelta

import pytest

from controlplane.telemetry import services
from controlplane.telemetry.models import EngineHour, EngineSample, UtilisationHour
from tests.controlplane.telemetry.rows import HOUR, make_node, make_samples, make_target

pytestmark = pytest.mark.django_db
END = HOUR + timedelta(hours=1)


def test_a_half_covered_hour_says_so() -> None:
    target = make_target()
    make_samples(target, 180, running=1)
    make_samples(target, 180, running=0, start=HOUR + timedelta(minutes=15))

    services.recompute_hour(hour=HOUR, now=END)

    row = UtilisationHour.objects.get()
    assert row.utilisation == 0.5
    assert (row.samples, row.expected_samples, row.coverage) == (360, 720, 0.5)
    assert row.memory_usage == 0.5
    assert row.source == "simulated"


def test_token_counts_are_sums_and_the_second_run_writes_the_same() -> None:
    target = make_target()
    make_samples(target, 10, prompt_tokens=100, generation_tokens=7, prefix_hits=None)

    def run() -> list[dict[str, object]]:
        services.recompute_hour(hour=HOUR, now=END)
        rows = EngineHour.objects.values()
        return [{k: v for k, v in row.items() if k != "updated_at"} for row in rows]

    first, second = run(), run()

    assert first == second
    assert (first[0]["prompt_tokens"], first[0]["generation_tokens"]) == (1000, 70)
    assert first[0]["prefix_hits"] is None
    assert first[0]["busy_seconds"] == 50.0


def test_an_engine_that_is_silent_is_not_idle() -> None:
    since = HOUR + timedelta(minutes=1)
    make_target(failing_since=since)

    services.recompute_hour(hour=HOUR, now=END)

    row = UtilisationHour.objects.get()
    assert row.utilisation is None
    assert (row.samples, row.expected_samples) == (0, 720)
    assert row.not_scraped_since == since
    assert row.source == "simulated"
    assert EngineHour.objects.count() == 0


def test_the_schedule_of_the_running_hour_ends_now() -> None:
    target = make_target(created_at=HOUR + timedelta(minutes=1))
    make_samples(target, 12, start=HOUR + timedelta(minutes=1))

    services.recompute_hour(hour=HOUR, now=HOUR + timedelta(minutes=2))

    assert UtilisationHour.objects.get().coverage == 1.0


def test_instances_that_follow_each_other_count_together_on_their_accelerator() -> None:
    node = make_node(accelerators=1)
    middle = HOUR + timedelta(minutes=30)
    first = make_target(node=node, active=False, ended_at=middle, role="prefill")
    second = make_target(node=node, created_at=middle, role="decode")
    make_samples(first, 360, running=0)
    make_samples(second, 360, running=3, start=middle)

    services.recompute_hour(hour=HOUR, now=END)

    row = UtilisationHour.objects.get()
    assert (row.utilisation, row.coverage, row.role) == (0.5, 1.0, "decode")
    assert EngineHour.objects.count() == 2


def test_output_speed_counts_busy_time_only() -> None:
    target = make_target(role="decode")
    make_samples(target, 10, generation_tokens=1000)
    make_samples(target, 10, running=0, generation_tokens=0, start=HOUR + timedelta(minutes=5))

    services.recompute_hour(hour=HOUR, now=END)

    assert UtilisationHour.objects.get().output_tokens_per_second == 200.0


def test_old_samples_go_and_recent_ones_stay() -> None:
    target = make_target()
    make_samples(target, 3, start=HOUR - timedelta(hours=60))
    make_samples(target, 2)

    deleted = services.delete_old_samples(now=END)

    assert deleted == 3
    assert EngineSample.objects.count() == 2
