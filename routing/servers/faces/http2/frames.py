"""Frames of HTTP/2 (RFC 9113) as bytes."""

import struct
from enum import IntEnum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES = 9

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITISED = 1, 1, 4, 8, 32

DEFAULT_WINDOW = 65_535
MOST_WINDOW = 2**31 - 1
DEFAULT_FRAME_BYTES = 16_384
MOST_FRAME_BYTES = 2**24 - 1

_SETTING = struct.Struct(">HL")


class Setting(IntEnum):
    """Parameters of SETTINGS that are read or sent."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class Code(IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class ConnectionBrokenError(Exception):
    """The peer broke a rule after which nothing on the connection can be trusted."""

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(why)
        self.code = code


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return b"%b%c%c%b%b" % (
        len(payload).to_bytes(3, "big"),
        kind,
        flags,
        stream.to_bytes(4, "big"),
        payload,
    )


def settings(values: dict[Setting, int]) -> bytes:
    """A SETTINGS frame."""
    payload = b"".join(_SETTING.pack(name, value) for name, value in values.items())
    return frame(SETTINGS, 0, 0, payload)


def read_settings(payload: bytes) -> list[tuple[int, int]]:
    """Its values in order, known or not. Raises ConnectionBrokenError."""
    if len(payload) % _SETTING.size:
        raise ConnectionBrokenError(Code.FRAME_SIZE_ERROR, "SETTINGS of a broken size")
    values = list(_SETTING.iter_unpack(payload))
    for name, value in values:
        if name == Setting.INITIAL_WINDOW_SIZE and value > MOST_WINDOW:
            raise ConnectionBrokenError(Code.FLOW_CONTROL_ERROR, "a window too large")
        is_size = DEFAULT_FRAME_BYTES <= value <= MOST_FRAME_BYTES
        if name == Setting.MAX_FRAME_SIZE and not is_size:
            raise ConnectionBrokenError(Code.PROTOCOL_ERROR, "a frame size out of range")
    return values


def window_update(stream: int, amount: int) -> bytes:
    """A WINDOW_UPDATE frame."""
    return frame(WINDOW_UPDATE, 0, stream, amount.to_bytes(4, "big"))


def reset(stream: int, code: Code) -> bytes:
    """A RST_STREAM frame."""
    return frame(RST_STREAM, 0, stream, code.to_bytes(4, "big"))


def goaway(last_stream: int, code: Code, why: str = "") -> bytes:
    """A GOAWAY frame."""
    payload = last_stream.to_bytes(4, "big") + code.to_bytes(4, "big") + why.encode()
    return frame(GOAWAY, 0, 0, payload)


def unpadded(flags: int, payload: bytes) -> bytes:
    """The content of a frame that may have padding. Raises ConnectionBrokenError."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionBrokenError(Code.PROTOCOL_ERROR, "padding longer than its frame")
    return payload[1 : len(payload) - payload[0]]


def header_block(flags: int, payload: bytes) -> bytes:
    """The part of the header block that a HEADERS frame has. Raises ConnectionBrokenError."""
    content = unpadded(flags, payload)
    if not flags & PRIORITISED:
        return content
    if len(content) < 5:
        raise ConnectionBrokenError(Code.FRAME_SIZE_ERROR, "HEADERS of a broken size")
    return content[5:]


def literal(name: bytes, value: bytes) -> bytes:
    """A header that enters no table, without Huffman code (RFC 7541, 6.2.2)."""
    return b"\x00%b%b%b%b" % (_length(len(name)), name, _length(len(value)), value)


def _length(size: int) -> bytes:
    """An integer behind one flag bit (RFC 7541, 5.1)."""
    if size < 127:
        return bytes((size,))
    rest, found = size - 127, bytearray((127,))
    while rest >= 128:
        found.append(rest % 128 + 128)
        rest //= 128
    found.append(rest)
    return bytes(found)
