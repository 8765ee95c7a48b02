"""Header blocks of a connection: put together, decoded, and the method that each calls."""

from typing import NamedTuple

import hpack

from routing.servers.faces.http2 import frames
from routing.servers.faces.http2.frames import Code, ConnectionBrokenError

HEADER_BYTES = 16 * 1024
"""Of a header block, coded and decoded. A gateway's calls have a few hundred; decoding is slow, so
that more would be a way to keep us busy."""
MOST_PIECES = 16
"""Frames of one block."""
MOST_TABLE_CHANGES = 2
"""At the begin of a block (RFC 7541, 4.2)."""
KNOWN_BLOCKS = 64
"""Header blocks that are remembered: a gateway sends the same one with nearly every stream."""
KNOWN_BYTES = 256
"""Of a block that is remembered, and of its path."""


class Opening(NamedTuple):
    """A whole header block."""

    number: int
    """Of its stream."""
    flags: int
    path: str
    size: int
    """Bytes of the block."""


class HeaderBlocks:
    """See the module. After ConnectionBrokenError it is of no use."""

    def __init__(self) -> None:
        self._decoder = hpack.Decoder(max_header_list_size=HEADER_BYTES)
        self._paths: dict[bytes, str] = {}
        self._number = self._flags = self._size = 0
        self._pieces: list[bytes] = []

    @property
    def is_open(self) -> bool:
        """A block was begun and goes on: no other frame may come."""
        return bool(self._pieces)

    def begin(self, flags: int, number: int, payload: bytes) -> Opening | None:
        """A HEADERS frame; the block when it is whole. Raises ConnectionBrokenError."""
        self._number, self._flags, self._size = number, flags, 0
        return self._add(flags, frames.header_block(flags, payload))

    def go_on(self, flags: int, number: int, payload: bytes) -> Opening | None:
        """A CONTINUATION frame; the block when it is whole. Raises ConnectionBrokenError."""
        if not self._pieces or self._number != number:
            raise ConnectionBrokenError(Code.PROTOCOL_ERROR, "CONTINUATION of nothing")
        return self._add(flags, payload)

    def _add(self, flags: int, piece: bytes) -> Opening | None:
        pieces = self._pieces
        pieces.append(piece)
        self._size += len(piece)
        if self._size > HEADER_BYTES or len(pieces) > MOST_PIECES:
            raise ConnectionBrokenError(Code.ENHANCE_YOUR_CALM, "a header block too large")
        if not flags & frames.END_HEADERS:
            return None
        block = piece if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        return Opening(self._number, self._flags, self._path_of(block), self._size)

    def _path_of(self, block: bytes) -> str:
        """The method that a block calls; blocks that only point into tables are remembered."""
        known = self._paths.get(block)
        if known is not None:
            return known
        _check_table_changes(block)
        try:
            headers = self._decoder.decode(block, raw=True)
        except hpack.HPACKError as error:
            # The library's text may repeat the block.
            raise ConnectionBrokenError(
                Code.COMPRESSION_ERROR, f"a header block that cannot be read ({_kind(error)})"
            ) from error
        path = b"".join(value for name, value in headers if name == b":path").decode("latin-1")
        is_plain = all(0x80 <= byte < 0xFF for byte in block)
        is_short = len(block) <= KNOWN_BYTES and len(path) <= KNOWN_BYTES
        if is_plain and is_short and len(self._paths) < KNOWN_BLOCKS:
            self._paths[block] = path
        else:
            # It may have changed what the others point at.
            self._paths.clear()
        return path


def _kind(error: Exception) -> str:
    return type(error).__name__


def _check_table_changes(block: bytes) -> None:
    """Raise ConnectionBrokenError for a block that changes the table's size again and again."""
    at = found = 0
    while at < len(block) and block[at] & 0xE0 == 0x20:
        found += 1
        if found > MOST_TABLE_CHANGES:
            raise ConnectionBrokenError(
                Code.COMPRESSION_ERROR, "a header block that changes the table too often"
            )
        is_long = block[at] & 0x1F == 0x1F
        at += 1
        while is_long and at < len(block) and block[at] >= 0x80:
            at += 1
        at += is_long
