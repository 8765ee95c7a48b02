"""What routers and the processes of a router tell each other: packets that may get lost.

A packet is about one pool and comes from one *node* (a process in one life of it). Everything in it
is absolute or harmless to hear twice, so loss, repetition and another order cost freshness only.
Endpoints are named by a hash of their id and instance; prompts by the 64-bit keys of their blocks.
No text of a prompt, and nothing a prompt can be read from without knowing it, is in any packet.
"""

from typing import Annotated, Any

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from routing.core.table import Instance

VERSION = 1
LOADS = (
    "requests",
    "sequences",
    "prefill_requests",
    "prefill_tokens",
    "context_tokens",
    "remaining_tokens",
    "private_tokens",
)
"""Columns of the table that leases change, in the order of the lines of `Loads.values`."""
_MOST = 2**32 - 1

_Number = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_Amount = Annotated[float, msgspec.Meta(ge=0)]


class Loads(msgspec.Struct, array_like=True, frozen=True):
    """Open leases of the node, summed per endpoint; absolute figures."""

    names: bytes
    """64-bit names of endpoints, little endian."""
    values: bytes
    """32-bit counts, a line of endpoints per column of `LOADS`."""


class Begun(msgspec.Struct, array_like=True, frozen=True):
    """A prompt was sent to an endpoint, or, with `is_withdrawn`, never got computed there."""

    endpoint: int
    lease: _Number
    keys: bytes
    """64-bit block keys, little endian; a long prompt comes in several parts."""
    is_withdrawn: bool = False


class BreakerNews(msgspec.Struct, array_like=True, frozen=True):
    """A breaker opened for so many seconds, or closed (`None`)."""

    endpoint: int
    kind: str
    seconds: Annotated[float, msgspec.Meta(ge=0, le=600)] | None


class TenantUse(msgspec.Struct, array_like=True, frozen=True):
    """What a tenant has running at the node, and has used since the node's start."""

    tenant: _Name
    open: _Number
    requests: _Amount
    tokens: _Amount


class Packet(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """See the module."""

    version: int = VERSION
    node: _Name
    epoch: _Number
    """Grows with each life of the node."""
    number: _Number
    """Grows with each packet of this life."""
    pool: _Name
    loads: Loads | None = None
    begun: tuple[Begun, ...] = ()
    breakers: tuple[BreakerNews, ...] = ()
    tenants: tuple[TenantUse, ...] = ()
    is_last: bool = False
    """The node goes; its leases are over."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Packet)


def encode(packet: Packet) -> bytes:
    """A packet as bytes."""
    return _encoder.encode(packet)


def decode(raw: bytes) -> Packet:
    """Read a packet. Raises ValueError for anything else, also of another version."""
    try:
        packet = _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"That is no packet of a peer: {error}.") from error
    if packet.version != VERSION:
        raise ValueError(f"Packets of version {packet.version} are not understood.")
    return packet


def name_of(instance: Instance) -> int:
    """64-bit name of an endpoint in one life of its process."""
    return xxhash.xxh3_64_intdigest(f"{instance.spec.id}\0{instance.spec.instance}".encode())


def pack_loads(names: list[int], values: NDArray[Any]) -> Loads:
    """`values` has a line per column of `LOADS`, and as many columns as there are names."""
    bounded = np.clip(values, 0, _MOST).astype("<u4")
    return Loads(np.array(names, dtype="<u8").tobytes(), bounded.tobytes())


def unpack_loads(loads: Loads) -> tuple[list[int], NDArray[np.float64]]:
    """The opposite of `pack_loads`. Raises ValueError when the sizes do not fit."""
    if len(loads.names) % 8 or len(loads.values) * 2 != len(loads.names) * len(LOADS):
        raise ValueError("The sizes of names and loads do not fit.")
    names: list[int] = np.frombuffer(loads.names, dtype="<u8").tolist()
    values = np.frombuffer(loads.values, dtype="<u4").reshape(len(LOADS), len(names))
    return names, values.astype(np.float64)


def pack_keys(keys: list[int]) -> bytes:
    """64-bit keys, little endian."""
    return np.array(keys, dtype="<u8").tobytes()


def unpack_keys(raw: bytes) -> list[int]:
    """The opposite of `pack_keys`. Raises ValueError when the size does not fit."""
    if len(raw) % 8:
        raise ValueError("Keys have eight bytes each.")
    keys: list[int] = np.frombuffer(raw, dtype="<u8").tolist()
    return keys
