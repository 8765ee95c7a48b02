"""Identifiers of rows."""

import os
import time
import uuid


def uuid7() -> uuid.UUID:
    """Random identifier that sorts by the millisecond it was made in (RFC 9562, version 7)."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)
