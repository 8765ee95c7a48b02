"""The calculator: published counts give the stated dollars, and it may be negative."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.planning import savings
from controlplane.planning.savings import Edge, InFlight, Point, Question

# Accelerators under the Service and under the router, from published runs, at 3 dollars an hour.
PUBLISHED = [
    ("120.5", "25.9", "2486088.00"),
    ("22.5", "15.2", "191844.00"),
    ("17.9", "116.9", "-2601720.00"),
    ("22.0", "8.5", "354780.00"),
    ("983.0", "183.3", "21016116.00"),
    ("7.4", "12.0", "-120888.00"),
]


@pytest.mark.parametrize(("before", "after", "amount"), PUBLISHED)
def test_published_counts_give_the_stated_amounts(before: str, after: str, amount: str) -> None:
    found = savings.saving_of(
        Decimal(before), Decimal(after), price=Decimal(3), hours=savings.HOURS_A_YEAR
    )

    assert found.amount == Decimal(amount)
    assert found.method == "modelled"


@given(
    before=st.decimals("0.1", "10000", places=2), after=st.decimals("0.1", "10000", places=2),
    price=st.decimals("0", "100", places=2),
)  # fmt: skip
def test_the_sign_follows_the_requests_in_flight(
    before: Decimal, after: Decimal, price: Decimal
) -> None:
    asked = Question(
        price=price, concurrency=Decimal(1000), ttft_limit_seconds=Decimal(1),
        pool_accelerators=Decimal(12), in_flight_before=before, in_flight_after=after,
    )  # fmt: skip

    found = savings.compute(asked)

    assert (found.amount >= 0) if after >= before else (found.amount <= 0)
    freed = found.accelerators_before - found.accelerators_after
    assert found.accelerator_hours_freed == freed * savings.HOURS_A_YEAR


def test_in_flight_is_read_between_the_points_around_the_limit() -> None:
    points = [Point(Decimal(flight), Decimal(ttft)) for flight, ttft in
              (("100", "0.2"), ("300", "0.8"), ("500", "2.8"))]  # fmt: skip

    assert savings.in_flight_within(points, Decimal("1.8")) == InFlight(Decimal(400))
    assert savings.in_flight_within(points, Decimal(5)) == InFlight(Decimal(500), "at-least")
    assert savings.in_flight_within(points, Decimal("0.1")) == InFlight(Decimal(100), "less-than")
    assert savings.in_flight_within([], Decimal(1)) is None


@pytest.mark.parametrize(
    ("before", "after", "bound"),
    [
        ("measured", "measured", "exact"),
        ("less-than", "measured", "at-least"),
        ("measured", "at-least", "at-least"),
        ("less-than", "at-least", "at-least"),
        ("at-least", "measured", "at-most"),
        ("measured", "less-than", "at-most"),
        ("at-least", "at-least", "open"),
        ("less-than", "less-than", "open"),
    ],
)
def test_a_side_that_ends_at_the_edge_of_what_was_measured_bounds_the_saving(
    before: Edge, after: Edge, bound: str
) -> None:
    found = savings.compute(
        Question(
            price=Decimal(3), concurrency=Decimal(1000), ttft_limit_seconds=Decimal(1),
            pool_accelerators=Decimal(12), in_flight_before=Decimal(100),
            in_flight_after=Decimal(400), edge_before=before, edge_after=after,
        )
    )  # fmt: skip

    assert found.bound == bound


def test_the_largest_inputs_have_an_answer_to_the_cent() -> None:
    most, least = Decimal("999999999999.99999999"), Decimal("0.00000001")

    found = savings.compute(
        Question(
            price=most, concurrency=most, ttft_limit_seconds=Decimal(1), pool_accelerators=most,
            in_flight_before=least, in_flight_after=most, hours=most,
        )
    )  # fmt: skip

    freed = found.accelerators_before - found.accelerators_after
    assert found.accelerators_before > Decimal(10) ** 31
    assert found.amount > freed * (most - 1) * (most - 1)
