"""What is read of Envoy's messages."""

from typing import Any

import pytest

from routing.servers.errors import ApiError
from routing.servers.faces.ext_proc import reading
from routing.servers.origin import Origin
from tests.routing.servers.faces.ext_proc.gateway import header_map, request_headers

ORIGINS = {
    "a": Origin("10.0.0.1", 8000),
    "b": Origin("10.0.0.1", 8001),
    "c": Origin("10.0.0.2", 8000),
    "six": Origin("fd00::1", 8000),
    "six-other": Origin("fd00::1", 8001),
}
KEY = "x-gateway-destination-endpoint-subset"


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        ([], set()),
        (["10.0.0.1:8000"], {"a"}),
        (["10.0.0.1"], {"a", "b"}),
        (["10.0.0.1:8001", "10.0.0.2"], {"b", "c"}),
        (["[fd00::1]:8000"], {"six"}),
        (["[fd00::1]"], {"six", "six-other"}),
        (["fd00::1"], {"six", "six-other"}),
        (["10.0.0.3", "10.0.0.1:80", "nonsense", ":"], set()),
    ],
)
def test_a_subset_names_addresses_or_hosts(entries: list[str], names: set[str]) -> None:
    assert reading.within(ORIGINS, entries) == names


@pytest.mark.parametrize(
    ("hint", "entries"),
    [
        (["10.0.0.1:8000", " 10.0.0.2 "], ("10.0.0.1:8000", "10.0.0.2")),
        ("10.0.0.1:8000, 10.0.0.2", ("10.0.0.1:8000", "10.0.0.2")),
        ("", ()),
        ([], ()),
        ([1, None, "10.0.0.1"], ("10.0.0.1",)),
        (7, ()),
        (None, ()),
    ],
)
def test_a_hint_is_a_list_or_text_and_nothing_else_widens(hint: Any, entries: Any) -> None:
    message = request_headers(metadata={"envoy.lb.subset_hint": {KEY: hint}})

    assert reading.subset_of(message) == entries


@pytest.mark.parametrize(
    "metadata", [None, {}, {"envoy.lb.subset_hint": {"other": "1"}}, {"envoy.lb": {KEY: "1"}}]
)
def test_without_a_hint_all_of_the_pool_may_be_chosen(metadata: Any) -> None:
    message = request_headers(metadata=metadata)

    assert reading.subset_of(message) is None
    # Looking changes nothing.
    assert "envoy.lb.subset_hint" not in (
        set(message.metadata_context.filter_metadata) - set(metadata or {})
    )


def test_headers_come_as_text_or_as_bytes_and_the_last_of_equal_ones_counts() -> None:
    told = header_map({"A": "1", "b": "ü"})
    told.headers.add(key="a", value="2")

    assert reading.headers_of(told) == {b"a": b"2", b"b": "ü".encode()}


@pytest.mark.parametrize(
    ("told", "status"), [(b"200", 200), (b"", None), (b"x", None), (b"20", None), (b"2000", None)]
)
def test_a_status_is_three_digits(told: bytes, status: int | None) -> None:
    assert reading.status_of({b":status": told}) == status
    assert reading.status_of({}) is None


def test_who_served_is_in_the_metadata_of_the_load_balancer() -> None:
    served = "x-gateway-destination-endpoint-served"
    told = request_headers(metadata={"envoy.lb": {served: "10.0.0.1:8000"}})
    other = request_headers(metadata={"envoy.lb": {"x": "y"}})

    assert reading.served_of(told) == "10.0.0.1:8000"
    assert (reading.served_of(other), reading.has_load_balancer(other)) == (None, True)
    assert (reading.served_of(request_headers()), reading.has_load_balancer(request_headers())) == (
        None,
        False,
    )


def test_a_tests_selection_is_a_comma_list() -> None:
    headers = {reading.TEST_SELECTION: b"10.0.0.1:8000, 10.0.0.2,"}

    assert reading.selection_of(headers) == ("10.0.0.1:8000", "10.0.0.2")
    assert reading.selection_of({}) is None


def test_small_pieces_of_a_body_are_put_together() -> None:
    body: list[bytes] = []
    for piece in [b"", b"a", b"", *[b"bc"] * 10_000, b"x" * 100_000, b"y" * 100_000, b"z"]:
        reading.keep(body, piece)

    assert b"".join(body) == b"a" + b"bc" * 10_000 + b"x" * 100_000 + b"y" * 100_000 + b"z"
    assert len(body) < 10


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({f"x-{number}": "" for number in range(1025)}, id="many"),
        pytest.param({"x-long": "v" * 2**20}, id="long"),
    ],
)
def test_headers_of_a_request_are_bounded(headers: dict[str, str]) -> None:
    with pytest.raises(ApiError, match="1024 headers") as refused:
        reading.head_bytes(request_headers(**headers))

    assert refused.value.status == 431
