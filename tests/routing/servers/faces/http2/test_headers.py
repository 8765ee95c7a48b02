"""Header blocks; how peers abuse them is in test_hostile."""

import hpack
import pytest

from routing.servers.faces.http2 import frames
from routing.servers.faces.http2.frames import ConnectionBrokenError
from routing.servers.faces.http2.headers import KNOWN_BLOCKS, HeaderBlocks, Opening

ENDS = frames.END_HEADERS


def test_a_block_is_whole_with_its_last_piece() -> None:
    blocks = HeaderBlocks()
    block = hpack.Encoder().encode([(":path", "/a"), ("x", "y")])

    assert blocks.begin(frames.END_STREAM, 3, block[:2]) is None
    assert blocks.is_open
    assert blocks.go_on(0, 3, b"") is None
    opening = blocks.go_on(ENDS, 3, block[2:])

    assert opening == Opening(3, frames.END_STREAM, "/a", len(block))
    assert not blocks.is_open


def test_a_piece_of_another_stream_does_not_go_on() -> None:
    blocks = HeaderBlocks()
    blocks.begin(0, 3, b"\x83")

    with pytest.raises(ConnectionBrokenError):
        blocks.go_on(ENDS, 5, b"\x83")


def test_the_table_may_change_twice_at_the_begin_of_a_block() -> None:
    encoder, blocks = hpack.Encoder(), HeaderBlocks()
    encoder.header_table_size = 100
    encoder.header_table_size = 4096

    opening = blocks.begin(ENDS, 1, encoder.encode([(":path", "/a")]))

    assert opening is not None
    assert opening.path == "/a"


def test_what_is_remembered_of_blocks_is_bounded() -> None:
    """Neither long paths, as a table can make of few bytes, nor long blocks, nor many."""
    encoder, blocks = hpack.Encoder(), HeaderBlocks()
    long, many = [(":path", "/" + "a" * 300)], [(":path", "/b")]
    for headers in (long, many):
        blocks.begin(ENDS, 1, encoder.encode(headers))
    for _ in range(2):
        assert blocks.begin(ENDS, 1, encoder.encode(long))
        assert blocks.begin(ENDS, 1, encoder.encode(many * 257))
    assert not blocks._paths
    for number in range(2 * KNOWN_BLOCKS):
        blocks.begin(ENDS, 1, encoder.encode(many) + b"\x83" * number)
        assert len(blocks._paths) <= KNOWN_BLOCKS
