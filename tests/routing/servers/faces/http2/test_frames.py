"""Frames and headers as bytes."""

import hpack
import pytest

from routing.servers.faces.http2 import frames
from routing.servers.faces.http2.frames import Setting


@pytest.mark.parametrize("size", [0, 10, 126, 127, 128, 300, 20_000])
def test_a_header_of_any_length_can_be_read_again(size: int) -> None:
    block = frames.literal(b"grpc-message", b"x" * size)

    assert hpack.Decoder().decode(block) == [("grpc-message", "x" * size)]


def test_a_frame_has_its_length_kind_flags_and_stream_before_it() -> None:
    assert frames.frame(frames.DATA, frames.END_STREAM, 258, b"abc") == (
        b"\0\0\3" + b"\0" + b"\1" + b"\0\0\1\2" + b"abc"
    )


def test_settings_are_read_as_they_were_written_and_unknown_ones_pass() -> None:
    told = frames.settings({Setting.INITIAL_WINDOW_SIZE: 7, Setting.MAX_FRAME_SIZE: 20_000})

    values = frames.read_settings(told[frames.HEAD_BYTES :] + b"\xff\xff\0\0\0\1")

    assert values == [(4, 7), (5, 20_000), (0xFFFF, 1)]
