"""Guards of a wave."""

from typing import Any

import pytest

from controlplane.serving.services.guards import Look, look, tripped

LIMITS = {"min_requests": 20, "max_error_share": 0.05, "ttft_p95_seconds": 1.6}


def seen(**overrides: Any) -> Look:
    values: dict[str, Any] = {
        "requests": 100, "failed_share": 0.0, "ttft_p95_at_least": 0.1, "ttft_p95_at_most": 0.2,
        "ttft_p95_before_at_most": None,
    }  # fmt: skip
    return Look(**values | overrides)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        pytest.param(seen(), "", id="all-well"),
        pytest.param(
            seen(failed_share=0.06),
            "6.0% of 100 requests failed; the guard is 5.0%.",
            id="too-many-failures",
        ),
        pytest.param(
            seen(ttft_p95_at_least=1.6),
            "TTFT p95 is at least 1.6 s; the guard is 1.6 s.",
            id="slow",
        ),
        pytest.param(seen(ttft_p95_at_least=0.8), "", id="perhaps-slow-does-not-trip"),
        pytest.param(
            seen(ttft_p95_at_least=3.2, ttft_p95_before_at_most=6.4),
            "",
            id="slow-before-the-wave-already",
        ),
        pytest.param(seen(requests=19, failed_share=1.0), "", id="too-few-requests"),
        pytest.param(seen(failed_share=None, ttft_p95_at_least=None), "", id="missing-numbers"),
    ],
)
def test_a_guard_trips_with_the_number_that_passed_it(found: Look, sentence: str) -> None:
    assert tripped(found, LIMITS) == sentence


def test_a_look_compares_with_the_time_when_the_engines_were_added() -> None:
    before = {"requests": {"total": 10, "failed": 0}, "ttft": {"0.1": 5.0, "+Inf": 5.0}}
    after = {"requests": {"total": 40, "failed": 3}, "ttft": {"0.1": 5.0, "+Inf": 35.0}}

    found = look({}, before, after)

    assert (found.requests, found.failed_share) == (30, 0.1)
    assert (found.ttft_p95_at_least, found.ttft_p95_at_most) == (0.1, None)


def test_without_a_first_look_nothing_is_known() -> None:
    found = look({}, {}, {"requests": {"total": 0, "failed": 0}, "ttft": {}})

    assert found == Look(
        requests=0,
        failed_share=None,
        ttft_p95_at_least=None,
        ttft_p95_at_most=None,
        ttft_p95_before_at_most=None,
    )
