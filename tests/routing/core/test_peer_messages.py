"""Packets between routers: what was packed comes out, and junk is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.core.document import EndpointSpec
from routing.core.peer_messages import (
    LOADS,
    Begun,
    Loads,
    Packet,
    decode,
    encode,
    name_of,
    pack_keys,
    pack_loads,
    unpack_keys,
    unpack_loads,
)
from routing.core.table import Instance
from tests.routing.pool.builders import endpoint_dict, make_document

NAMES = st.lists(st.integers(0, 2**64 - 1), max_size=40)


def spec(**changes: str) -> EndpointSpec:
    return make_document(endpoint_dict("a", **changes)).endpoints[0]


@given(names=NAMES, load=st.integers(0, 2**32 - 1))
def test_loads_come_out_as_they_went_in(names: list[int], load: int) -> None:
    values = np.full((len(LOADS), len(names)), float(load))

    found, loads = unpack_loads(pack_loads(names, values))

    assert found == names
    assert np.array_equal(loads, values)


def test_loads_out_of_range_are_bounded() -> None:
    values = np.array([[-5.0, 1e12]] * len(LOADS))

    _, loads = unpack_loads(pack_loads([1, 2], values))

    assert loads[0].tolist() == [0.0, 2.0**32 - 1]


@given(keys=NAMES)
def test_keys_come_out_as_they_went_in(keys: list[int]) -> None:
    assert unpack_keys(pack_keys(keys)) == keys


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="eight bytes"):
        unpack_keys(b"1234567")
    with pytest.raises(ValueError, match="do not fit"):
        unpack_loads(Loads(b"12345678", b"1234"))


def test_a_packet_comes_out_as_it_went_in() -> None:
    begun = (Begun(7, 1, pack_keys([1, 2])),)
    packet = Packet(node="r1/0", epoch=1, number=2, pool="main", begun=begun)

    assert decode(encode(packet)) == packet


@given(junk=st.binary(max_size=300))
def test_junk_is_refused(junk: bytes) -> None:
    with pytest.raises(ValueError, match="packet"):
        decode(junk)


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version 9"):
        decode(encode(Packet(version=9, node="r", epoch=1, number=1, pool="main")))


@pytest.mark.parametrize("number", [-1, 2**63])
def test_numbers_that_no_column_holds_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="packet"):
        decode(encode(Packet(node="r", epoch=1, number=number, pool="main")))


def test_another_life_of_an_endpoint_has_another_name() -> None:
    one, other = (Instance(spec(instance=life), 0, 0) for life in "12")

    assert name_of(one) != name_of(other)
