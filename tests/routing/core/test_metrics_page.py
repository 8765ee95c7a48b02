"""Single metrics out of a Prometheus page."""

import pytest

from routing.core.metrics_page import MAX_SAMPLES, latest, series, total

PAGE = b'# HELP a x\n# TYPE a gauge\na{l="1"} 2\na{l="x} y"} 3 1700000000\nab{l="1"} 50\nplain 7\n'


def test_a_name_matches_whole_and_with_any_labels() -> None:
    assert series(PAGE, b"a") == [(b'a{l="1"', 2.0), (b'a{l="x} y"', 3.0)]
    assert total(PAGE, b"a") == 5
    assert latest(PAGE, b"a") == 3


def test_samples_without_labels_are_found() -> None:
    assert total(PAGE, b"plain") == 7


def test_absent_is_unknown() -> None:
    assert total(PAGE, b"b") is None
    assert latest(PAGE, b"b") is None


@pytest.mark.parametrize("value", [b"NaN", b"+Inf", b"", b"many"])
def test_a_part_that_is_no_number_makes_the_sum_unknown(value: bytes) -> None:
    assert total(b"\na{} 1\na{} " + value + b"\n", b"a") is None


def test_a_metric_with_countless_samples_is_not_read() -> None:
    assert series(b"\na{} 1" * (MAX_SAMPLES + 2), b"a") == []
