"""Numbers, money and times: missing is a dash, never 0."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone, translation

from controlplane.console import format as fmt

NOW = datetime(2026, 11, 18, 4, 5, 22, tzinfo=UTC)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_what_is_missing_is_a_dash_and_never_zero(missing: float | None) -> None:
    shown = {fmt.number(missing), fmt.percent(missing), fmt.money(missing, "USD"),
             fmt.compact(missing), fmt.duration(missing)}  # fmt: skip

    assert shown == {fmt.MISSING}
    assert fmt.number(0) == "0"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(1234.5, 1, "1,234.5"), (0.4, 2, "0.40"), (Decimal("12.3456"), 4, "12.3456"), (-3, 0, "-3")],
)
def test_numbers_are_grouped_and_have_their_decimals(value: float, digits: int, text: str) -> None:
    assert fmt.number(value, digits) == text


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (Decimal("29499200.4"), "KRW", "₩29,499,200"),
        (Decimal("1323"), "USD", "$1,323.00"),
        (Decimal("123456.7"), "USD", "$123,457"),
    ],
)
def test_money_has_its_sign_and_won_no_decimals(amount: Decimal, currency: str, text: str) -> None:
    assert fmt.money(amount, currency) == text


@pytest.mark.parametrize(
    ("value", "text"), [(950, "950"), (41_200, "41.2 k"), (812e6, "812 M"), (2.4e9, "2.4 G")]
)
def test_large_counts_are_compact(value: float, text: str) -> None:
    assert fmt.compact(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(48, "48 s"), (781, "13 min 1 s"), (17_700, "4 h 55 min"), (183_600, "2 d 3 h"), (-5, "0 s")],
)
def test_durations_have_two_units_at_most(seconds: float, text: str) -> None:
    assert fmt.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(18, "18 s"), (1440, "24 min"), (7200, "2 h"), (432_000, "5 d")]
)
def test_ages_have_one_unit(seconds: int, text: str) -> None:
    assert fmt.age(NOW - timedelta(seconds=seconds), NOW) == text


def test_today_shows_the_time_and_other_days_the_date_in_the_persons_zone() -> None:
    with timezone.override(ZoneInfo("Asia/Seoul")):
        today = fmt.clock(NOW, NOW)
        before = fmt.clock(NOW - timedelta(days=4), NOW)

    assert (today, before) == ("13:05:22", "14 Nov 13:05")


def test_korean_dates_are_written_in_korean() -> None:
    with translation.override("ko"):
        assert fmt.day(NOW) == "11월 18일"
        assert fmt.month(NOW) == "2026년 11월"


def test_the_zone_is_printed_with_its_distance_from_utc() -> None:
    with timezone.override(ZoneInfo("Asia/Seoul")):
        assert fmt.zone() == "KST (UTC+9)"
    with timezone.override(UTC):
        assert fmt.zone() == "UTC"


def test_a_number_of_more_than_28_digits_is_shown_whole() -> None:
    large = Decimal("1" + 30 * "0" + ".5")

    assert fmt.number(large, 1).replace(",", "") == str(large)
    assert fmt.money(large, "USD").startswith("$1,000,")
