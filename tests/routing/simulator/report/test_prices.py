"""Listed prices and draws."""

from decimal import Decimal

from routing.simulator.report.prices import idle_share, list_currency, listed


def test_a_replica_on_two_accelerators_costs_and_draws_twice_as_much() -> None:
    one, two = listed("nvidia-h100-sxm"), listed("nvidia-h100-sxm-tp2")

    assert one.price_per_hour is not None
    assert one.watts is not None
    assert two.price_per_hour == 2 * one.price_per_hour
    assert two.watts == 2 * one.watts


def test_a_price_that_nobody_lists_is_unknown_and_not_zero() -> None:
    listing = listed("huawei-ascend-910b")

    assert listing.price_per_hour is None
    assert listing.watts == 310


def test_an_accelerator_that_nobody_knows_has_neither() -> None:
    listing = listed("abacus")

    assert listing.price_per_hour is None
    assert listing.watts is None


def test_prices_are_decimals_in_one_currency() -> None:
    assert listed("amd-mi325x").price_per_hour == Decimal("1.95")
    assert list_currency() == "USD"


def test_the_idle_share_is_a_share() -> None:
    assert 0 < idle_share() < 1
