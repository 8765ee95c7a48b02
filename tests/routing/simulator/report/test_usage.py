"""What endpoints did, cost and drew."""

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.core.document import PoolDocument
from routing.simulator.engine.time_spent import Spent
from routing.simulator.fleet import Member, build_fleet
from routing.simulator.report.usage import (
    Phases,
    cost_of,
    cost_per_million,
    energy_wh,
    phases_between,
    phases_of,
    replica_reports,
)
from routing.simulator.requests import Arrival, Course, Prompt


def _document(*prices: str | None) -> PoolDocument:
    members = [Member(accelerator="amd-mi325x", count=1, price_per_hour=price) for price in prices]
    return build_fleet(members, model="granite-4.1-8b").in_currency("USD").document


def _course(
    destination: str, *, prefill: str | None = None, cached: int = 0, outcome: str = "ok"
) -> Course:
    arrival = Arrival(at=0.0, prompt=Prompt((), 1000), output_tokens=50)
    return Course(
        0, 0, arrival, 0.0, outcome=outcome, destination=destination, prefill=prefill,
        cached_tokens=cached, output_tokens=50 if outcome == "ok" else 0,
    )  # fmt: skip


IDLE = Phases(prefill=0.0, decode=0.0, idle=10.0, down=0.0)


def test_an_hour_of_two_endpoints_costs_both_their_prices() -> None:
    assert cost_of(_document("1.95", "3.07"), 3600.0) == Decimal("5.0200")


def test_a_fleet_with_one_unknown_price_has_no_cost() -> None:
    assert cost_of(_document("1.95", None), 3600.0) is None


def test_a_price_of_zero_is_a_price() -> None:
    assert cost_of(_document("0"), 3600.0) == Decimal("0.0000")


def test_a_million_tokens_cost_what_the_stage_cost_for_its_tokens() -> None:
    assert cost_per_million(Decimal("2.5000"), 500_000) == Decimal("5.0000")


@pytest.mark.parametrize(("cost", "tokens"), [(None, 10), (Decimal("1"), 0)])
def test_without_a_cost_or_a_token_a_million_has_no_cost(cost: Decimal | None, tokens: int) -> None:
    assert cost_per_million(cost, tokens) is None


@given(
    busy=st.floats(0, 1e5), idle=st.floats(0, 1e5), down=st.floats(0, 1e5), watts=st.floats(1, 2e3)
)
def test_energy_lies_between_idling_and_working_all_the_time(
    busy: float, idle: float, down: float, watts: float
) -> None:
    spent = Phases(prefill=busy / 2, decode=busy / 2, idle=idle, down=down)
    most = watts * (busy + idle + down) / 3600

    energy = energy_wh(watts, spent)

    assert energy is not None
    assert 0.17 * most - 1e-6 <= energy <= most + 1e-6


def test_an_unknown_draw_gives_no_energy() -> None:
    assert energy_wh(None, IDLE) is None


def test_phases_of_a_stage_are_what_was_spent_in_it() -> None:
    before = Spent(prefill=1.0, decode=2.0, idle=3.0, down=0.0)
    after = Spent(prefill=1.5, decode=4.0, idle=3.5, down=1.0)

    between = phases_between(before, after)

    assert between == Phases(prefill=0.5, decode=2.0, idle=0.5, down=1.0)
    assert between.busy == pytest.approx(2.5)
    assert phases_of([between, between]) == Phases(prefill=1.0, decode=4.0, idle=1.0, down=2.0)


def test_a_pair_counts_as_prompt_of_one_endpoint_and_answer_of_the_other() -> None:
    document = _document("1", "1")
    first, second = (spec.id for spec in document.endpoints)
    courses = [_course(second, prefill=first, cached=250), _course(second, cached=500)]

    reports = replica_reports(document, courses, {first: IDLE, second: IDLE})

    assert [(one.answered, one.prefilled, one.output_tokens) for one in reports] == [
        (0, 1, 0),
        (2, 1, 100),
    ]
    assert [one.prefix_hit_rate for one in reports] == [0.25, 0.5]


def test_a_request_without_an_answer_is_no_work_of_an_endpoint() -> None:
    document = _document("1")
    only = document.endpoints[0].id

    (report,) = replica_reports(document, [_course(only, outcome="timeout")], {only: IDLE})

    assert report.answered == report.output_tokens == 0
    assert report.prefix_hit_rate is None
    assert msgspec.to_builtins(report)["energy_wh"] is None
