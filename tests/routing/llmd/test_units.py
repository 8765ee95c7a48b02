"""Quantities and durations as Kubernetes and Go write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.core.document import DocumentError
from routing.llmd.units import duration, seconds, whole


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (5000, 5000),
        ("5000", 5000),
        ("1G", 10**9),
        ("512Mi", 512 * 2**20),
        ("12k", 12_000),
        ("1.5Gi", 3 * 2**29),
        ("1e3", 1000),
        ("1500m", 2),
        ("0", 0),
    ],
)
def test_quantities(text: str | int, expected: int) -> None:
    assert whole(text, "/x") == expected


@pytest.mark.parametrize("text", ["", "1GB", "-1", "G", "1 G", "1e999", "0x10", "٣"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(DocumentError) as caught:
        whole(text, "/flowControl/maxBytes")

    assert caught.value.pointer == "/flowControl/maxBytes"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("60s", 60),
        ("1m30s", 90),
        ("200ms", 0.2),
        ("1.5h", 5400),
        ("0s", 0),
        ("0", 0),
        ("2us", 2e-6),
    ],
)
def test_durations(text: str, expected: float) -> None:
    assert seconds(text, "/x") == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "60", "1 s", "s", "-1s", "1d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(DocumentError):
        seconds(text, "/x")


@given(st.floats(0.001, 86_400))
def test_a_duration_is_read_back_to_the_millisecond(value: float) -> None:
    assert seconds(duration(value), "/x") == pytest.approx(value, abs=6e-4)
