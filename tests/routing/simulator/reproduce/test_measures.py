"""What bands are about, on ladders whose numbers one can add up in one's head."""

import msgspec
import pytest

from routing.simulator.reproduce.measures import Band, Pair, measured, overall
from tests.routing.simulator.reproduce.rows import make_row

PAIR = Pair(
    service=(
        make_row(3, 1000, published=1000, ttft=0.5),
        make_row(40, 5000, published=6000, ttft=8.0),
        make_row(85, 4000, published=4500, ttft=30.0),
    ),
    router=(
        make_row(3, 1100, published=900, ttft=0.1),
        make_row(40, 9000, published=12000, ttft=0.2),
        make_row(85, 9900, published=9000, ttft=5.0),
    ),
)


def _band(measure: str, **limits: float) -> Band:
    fields = {"id": "x", "case": "x", "text": "x", "measure": measure} | limits
    return msgspec.convert(fields, Band)


@pytest.mark.parametrize(
    ("measure", "at", "simulated", "published"),
    [
        ("ladder_ratio", 0, 2.0, 21900 / 11500),
        ("ladder_ratio_to_published", 0, 2.0 / (21900 / 11500), 1.0),
        ("output_ratio", 85, 2.475, 2.0),
        ("service_peak", 0, 5000, 6000),
        ("service_after_peak", 0, 0.8, 0.75),
        ("ttft_mean_ratio", 85, 6.0, None),
        ("ttft_p50_ratio", 40, 40.0, None),
        ("ttft_mean_difference", 40, -7.8, None),
        ("router_ttft_p50", 0, 5.0, None),
    ],
)
def test_a_measure_gives_both_sides(
    measure: str, at: float, simulated: float, published: float | None
) -> None:
    ours, theirs = measured(PAIR, _band(measure, at=at))

    assert ours == pytest.approx(simulated)
    assert theirs == (None if published is None else pytest.approx(published))


def test_limits_on_every_stage_are_on_the_worst() -> None:
    ours, theirs = measured(PAIR, _band("service_output_from", at=40, low=4500, high=6500))

    assert (ours, theirs) == (4000, 4500)


def test_a_stage_that_was_not_run_is_unknown() -> None:
    assert measured(PAIR, _band("output_ratio", at=12)) == (None, None)


@pytest.mark.parametrize(
    ("value", "is_met"), [(None, False), (1.0, True), (2.0, True), (0.99, False), (2.01, False)]
)
def test_a_band_holds_its_limits_included(value: float | None, is_met: bool) -> None:
    assert _band("output_ratio", low=1.0, high=2.0).holds(value) is is_met


def test_overall_errors_are_medians_over_published_rows() -> None:
    assert overall([*PAIR.service, *PAIR.router], "median_error_output") == pytest.approx(
        (500 / 4500 + 1000 / 6000) / 2
    )
    assert overall(PAIR.service, "median_error_tpot") is None


def test_first_tokens_are_compared_as_factors_where_they_are_long() -> None:
    rows = [
        msgspec.structs.replace(row, published_ttft_mean_s=ttft)
        for row, ttft in zip(PAIR.service, (0.1, 16.0, 15.0), strict=True)
    ]

    assert overall(rows, "median_factor_ttft") == pytest.approx(2.0)
