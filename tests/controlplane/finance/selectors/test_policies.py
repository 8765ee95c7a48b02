"""Policies side by side, with the word that their difference stands on."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from controlplane.finance import selectors
from controlplane.metering import services as metering
from tests.controlplane.finance.rows import assign, make_asset_cost, make_pool
from tests.controlplane.metering.rows import AT, make_event, make_segment
from tests.controlplane.telemetry.rows import make_node

pytestmark = pytest.mark.django_db
START = datetime.fromtimestamp(AT, UTC) - timedelta(minutes=1)
END = START + timedelta(minutes=30)


def traffic() -> None:
    events = [
        make_event(1, policy="random", received_at=AT, ended_at=AT + 36, cached_tokens=200),
        make_event(2, policy="consort", received_at=AT + 100, ended_at=AT + 118, ttft_seconds=0.1),
    ]
    metering.ingest_segment(make_segment(events))


def test_the_difference_is_an_estimate_because_the_engines_are_simulated() -> None:
    node = make_node(accelerators=2)
    make_asset_cost(node)
    assign(make_pool(), list(node.accelerators.all()), "both")
    traffic()

    comparison = selectors.policy_comparison(pool="granite", start=START, end=END)

    consort, random = comparison.rows
    per_hour = selectors.cost_per_hour(at=START)[node.pk].total
    # 36 s of the node for 50 output tokens, against 18 s.
    assert random.cost == pytest.approx(per_hour / 100, abs=Decimal("1e-9"))
    assert random.cost_per_million_output_tokens == pytest.approx(
        per_hour / 100 / 50 * 1_000_000, abs=Decimal("0.01")
    )
    (difference,) = comparison.differences
    assert (difference.policy, difference.baseline) == ("consort", "random")
    assert difference.prefix_hit_rate_ratio == pytest.approx(3.0)
    assert difference.ttft_p50_ratio == pytest.approx(0.5, rel=0.04)
    assert difference.cost_ratio == pytest.approx(0.5)
    assert difference.cost_per_million_output_tokens_difference is not None
    assert difference.cost_per_million_output_tokens_difference < 0
    assert (difference.word, consort.source) == ("estimate (simulated)", "simulated")


def test_a_pool_of_real_engines_is_not_called_simulated() -> None:
    make_pool(engine="vllm")
    traffic()

    comparison = selectors.policy_comparison(pool="granite", start=START, end=END)

    assert comparison.word == "before and after (not adjusted)"
    assert {row.source for row in comparison.rows} == {"measured"}


def test_an_accelerator_without_a_cost_makes_the_cost_unknown() -> None:
    priced, unpriced = make_node(accelerators=1), make_node(accelerators=1)
    make_asset_cost(priced)
    pool = make_pool()
    for node in (priced, unpriced):
        assign(pool, [node.accelerators.get()], "both")
    traffic()

    comparison = selectors.policy_comparison(pool="granite", start=START, end=END)

    assert [row.cost_per_million_output_tokens for row in comparison.rows] == [None, None]
    assert comparison.differences[0].cost_ratio is None


def test_no_traffic_is_no_row() -> None:
    make_pool()

    comparison = selectors.policy_comparison(pool="granite", start=START, end=END)

    assert (comparison.rows, comparison.differences) == ([], [])
