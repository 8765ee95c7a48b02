"""Sealed packets between routers: who does not hold the secret can neither make nor repeat one.

A packet is `CG1`, the sender's life (8 random bytes), Unix milliseconds, a counter, the content and
the first 16 bytes of HMAC-SHA256 over all of it. A packet is refused when its seal is wrong, when
it is older or younger than `MAX_SKEW_SECONDS`, and when its counter was seen or has left the window
of its sender's life. Content is authenticated, not hidden: it holds no text, only names, counts and
hashes.
"""

import hashlib
import hmac
import secrets
import struct
from collections import OrderedDict

MAGIC = b"CG1"
_HEAD = struct.Struct("<3s8sQQ")
SEAL_BYTES = 16
OVERHEAD_BYTES = _HEAD.size + SEAL_BYTES
MAX_SKEW_SECONDS = 30.0
"""Clocks of routers may differ by so much; NTP keeps them a thousand times closer."""
WINDOW = 1024
"""How far a packet may be overtaken by its successors."""
MAX_LIVES = 1024


class SealError(Exception):
    """A packet that is not taken; `reason` is short and fit for a metric."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The packet was refused: {reason}.")
        self.reason = reason


def key_of(secret: bytes) -> bytes:
    """The key for packets, from a secret that may serve other purposes, too."""
    return hmac.digest(secret, b"consort gossip between routers", "sha256")


class Sealer:
    """Seals the packets of one life of a sender."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._life = secrets.token_bytes(8)
        self._count = 0

    def seal(self, content: bytes, *, unix_now: float) -> bytes:
        """A packet that can be sent, once."""
        self._count += 1
        signed = _HEAD.pack(MAGIC, self._life, int(unix_now * 1000), self._count) + content
        return signed + _seal(self._key, signed)


class Opener:
    """Opens packets of all who hold the key; remembers which were seen."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._windows: OrderedDict[bytes, _Window] = OrderedDict()

    def open(self, packet: bytes, *, unix_now: float) -> bytes:
        """The content of a packet. Raises SealError."""
        if len(packet) < OVERHEAD_BYTES or not packet.startswith(MAGIC):
            raise SealError("not a sealed packet")
        signed, seal = packet[:-SEAL_BYTES], packet[-SEAL_BYTES:]
        if not hmac.compare_digest(seal, _seal(self._key, signed)):
            raise SealError("wrong seal")
        _, life, milliseconds, count = _HEAD.unpack_from(packet)
        if abs(unix_now - milliseconds / 1000) > MAX_SKEW_SECONDS:
            raise SealError("not of this time")
        if not self._window(life).take(count):
            raise SealError("repeated")
        return signed[_HEAD.size :]

    def _window(self, life: bytes) -> "_Window":
        window = self._windows.get(life)
        if window is None:
            window = self._windows[life] = _Window()
            if len(self._windows) > MAX_LIVES:
                # The longest silent life; its packets are too old by now in any real fleet.
                self._windows.popitem(last=False)
        self._windows.move_to_end(life)
        return window


class _Window:
    """Counters seen: the highest, and a bit for each of the `WINDOW` below it."""

    __slots__ = ("_highest", "_seen")

    def __init__(self) -> None:
        self._highest = 0
        self._seen = 0

    def take(self, count: int) -> bool:
        """True the first time, if the counter is not too far back."""
        if count > self._highest:
            shift = min(count - self._highest, WINDOW)
            self._seen = ((self._seen << shift) | 1) & ((1 << WINDOW) - 1)
            self._highest = count
            return True
        back = self._highest - count
        if back >= WINDOW or self._seen >> back & 1:
            return False
        self._seen |= 1 << back
        return True


def _seal(key: bytes, signed: bytes) -> bytes:
    return hmac.digest(key, signed, hashlib.sha256)[:SEAL_BYTES]
