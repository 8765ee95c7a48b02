"""A published run, simulated: one row a stage, both sides in the same units."""

import pytest

from routing.simulator.reproduce.stages import StageRow, simulate

RESULT = "nxt-h100nvl-granite-decode-heavy-k8s"


@pytest.fixture(scope="module")
def rows() -> list[StageRow]:
    """Warm-up and the stage of 3 requests/s."""
    return simulate(RESULT, "service", rates=(3,))


def test_a_row_has_both_sides(rows: list[StageRow]) -> None:
    first, second = rows

    assert (first.is_warm_up, first.rate_qps, second.rate_qps) == (True, 5.0, 3.0)
    assert second.published_out_tok_s == 4598.9
    assert second.published_tpot_mean_ms == 11.0
    assert (second.sent, second.failed) == (90, 0)


def test_a_stage_that_nothing_was_fitted_on_is_near_what_was_published(
    rows: list[StageRow],
) -> None:
    assert rows[1].out_tok_s == pytest.approx(4598.9, rel=0.15)
    assert rows[1].tpot_mean_ms == pytest.approx(11.0, rel=0.15)


def test_throughput_is_in_tokens_as_the_load_generator_counts_them(rows: list[StageRow]) -> None:
    assert rows[1].out_tok_s == pytest.approx(3986 * rows[1].requests_per_s)


def test_equal_runs_are_equal(rows: list[StageRow]) -> None:
    assert simulate(RESULT, "service", rates=(3,)) == rows


def test_a_run_can_be_stopped() -> None:
    assert len(simulate(RESULT, "service", should_stop=lambda: True)) <= 1
