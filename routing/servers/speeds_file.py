"""Keeps what the pools' routers learned about speed on disk, so that a restart does not forget it.

Written every 30 seconds and at the end, in one step and readable by its owner only. A file that
cannot be read is left out with a warning: everything in it can be learned again.
"""

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec

from routing.servers import clock
from routing.servers.files import write_durably
from routing.servers.state import RouterState

logger = logging.getLogger(__name__)

WRITE_SECONDS = 30.0
MAX_BYTES = 64 * 2**20


class _Kept(msgspec.Struct):
    written_at: float
    """Unix time."""
    pools: dict[str, dict[str, Any]]


class SpeedsFile:
    """One file for all pools of a process."""

    def __init__(self, state: RouterState, path: Path) -> None:
        self._state = state
        self._path = path
        self._kept = self._read()
        self._seen: set[str] = set()
        self._writing: asyncio.Task[None] | None = None

    def follow_documents(self) -> None:
        """Give each pool that is here for the first time what was kept of it."""
        pools = self._state.directory.pools
        for name in [name for name in pools if name not in self._seen]:
            self._seen.add(name)
            kept = self._kept.pools.pop(name, None)
            if kept is not None:
                age = max(0.0, clock.unix_now() - self._kept.written_at)
                taken = pools[name].router.speeds.restore(kept, age_seconds=age)
                logger.info("Pool %s: %d learned speeds, %.0f s old.", name, taken, age)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_often())

    async def stop(self) -> None:
        """Write once more."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
            self._writing = None
            self.write()

    async def _write_often(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            # The disk may be slow, and the loop serves streams.
            content = self._content()
            await asyncio.to_thread(self._put, content)

    def write(self) -> None:
        """Write now."""
        self._put(self._content())

    def _content(self) -> bytes:
        pools = {
            name: pool.router.speeds.export() for name, pool in self._state.directory.pools.items()
        }
        # What was kept of a pool that has no document at present is kept on.
        kept = self._kept.pools | pools
        return msgspec.json.encode(_Kept(written_at=clock.unix_now(), pools=kept))

    def _put(self, content: bytes) -> None:
        try:
            write_durably(self._path, content)
        except OSError as error:
            logger.warning("Learned speeds could not be written to %s: %s.", self._path, error)

    def _read(self) -> _Kept:
        nothing = _Kept(written_at=0.0, pools={})
        try:
            if self._path.stat().st_size > MAX_BYTES:
                logger.warning("%s is too large to be learned speeds; left out.", self._path)
                return nothing
            return msgspec.json.decode(self._path.read_bytes(), type=_Kept)
        except FileNotFoundError:
            return nothing
        except (OSError, msgspec.DecodeError) as error:
            logger.warning("Learned speeds in %s cannot be read: %s.", self._path, error)
            return nothing
