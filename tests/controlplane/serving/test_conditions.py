"""Conditions."""

from datetime import UTC, datetime

from controlplane.serving.conditions import with_condition

EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


def test_the_time_changes_only_with_the_status() -> None:
    first = with_condition([], type="Ready", status="False", message="loading", at=EARLY)

    same = with_condition(first, type="Ready", status="False", message="warming", at=LATE)
    other = with_condition(same, type="Ready", status="True", at=LATE)

    assert (same[0]["at"], same[0]["message"]) == (EARLY.isoformat(), "warming")
    assert (other[0]["at"], other[0]["message"]) == (LATE.isoformat(), "")


def test_conditions_stand_beside_each_other_in_a_stable_order() -> None:
    rows = with_condition([], type="Started", status="True", at=EARLY)
    rows = with_condition(rows, type="Applied", status="Unknown", at=EARLY)

    assert [row["type"] for row in rows] == ["Applied", "Started"]
