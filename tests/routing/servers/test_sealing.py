"""Packets that only holders of the secret can make, and that work once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.servers.sealing import (
    MAX_LIVES,
    MAX_SKEW_SECONDS,
    OVERHEAD_BYTES,
    WINDOW,
    Opener,
    Sealer,
    SealError,
    key_of,
)

KEY = key_of(b"a secret of the routers")
NOW = 1_796_000_000.0


@given(content=st.binary(max_size=2000))
def test_what_was_sealed_comes_out_and_grows_by_a_fixed_size(content: bytes) -> None:
    packet = Sealer(KEY).seal(content, unix_now=NOW)

    assert Opener(KEY).open(packet, unix_now=NOW) == content
    assert len(packet) == len(content) + OVERHEAD_BYTES


@given(position=st.integers(0, 200), bit=st.integers(0, 7))
def test_a_packet_with_any_bit_changed_is_refused(position: int, bit: int) -> None:
    packet = bytearray(Sealer(KEY).seal(b"x" * 50, unix_now=NOW))
    packet[position % len(packet)] ^= 1 << bit

    with pytest.raises(SealError):
        Opener(KEY).open(bytes(packet), unix_now=NOW)


@given(junk=st.binary(max_size=200))
def test_junk_is_refused(junk: bytes) -> None:
    with pytest.raises(SealError):
        Opener(KEY).open(junk, unix_now=NOW)


def test_another_secret_does_not_open() -> None:
    packet = Sealer(key_of(b"another secret")).seal(b"loads", unix_now=NOW)

    with pytest.raises(SealError, match="wrong seal"):
        Opener(KEY).open(packet, unix_now=NOW)


def test_a_repeated_packet_is_refused_also_after_others() -> None:
    sealer, opener = Sealer(KEY), Opener(KEY)
    packets = [sealer.seal(b"%d" % number, unix_now=NOW) for number in range(50)]
    for packet in packets:
        opener.open(packet, unix_now=NOW)

    for packet in packets:
        with pytest.raises(SealError, match="repeated"):
            opener.open(packet, unix_now=NOW)


@pytest.mark.parametrize("lag", [-MAX_SKEW_SECONDS - 1, MAX_SKEW_SECONDS + 1])
def test_a_packet_of_another_time_is_refused(lag: float) -> None:
    packet = Sealer(KEY).seal(b"loads", unix_now=NOW)

    with pytest.raises(SealError, match="time"):
        Opener(KEY).open(packet, unix_now=NOW + lag)


def test_packets_that_overtake_each_other_within_the_window_are_all_taken() -> None:
    sealer, opener = Sealer(KEY), Opener(KEY)
    packets = [sealer.seal(b"%d" % number, unix_now=NOW) for number in range(WINDOW)]
    order = np.random.default_rng(7).permutation(WINDOW).tolist()

    taken = {opener.open(packets[position], unix_now=NOW) for position in order}

    assert len(taken) == WINDOW


def test_a_packet_that_left_the_window_is_refused() -> None:
    sealer, opener = Sealer(KEY), Opener(KEY)
    late = sealer.seal(b"late", unix_now=NOW)
    for _ in range(WINDOW):
        opener.open(sealer.seal(b"", unix_now=NOW), unix_now=NOW)

    with pytest.raises(SealError, match="repeated"):
        opener.open(late, unix_now=NOW)


def test_lives_are_bounded() -> None:
    opener = Opener(KEY)

    for _ in range(MAX_LIVES + 10):
        opener.open(Sealer(KEY).seal(b"", unix_now=NOW), unix_now=NOW)

    assert len(opener._windows) == MAX_LIVES
