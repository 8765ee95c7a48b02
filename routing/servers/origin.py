"""Addresses of engines."""

from typing import NamedTuple
from urllib.parse import urlsplit


class Origin(NamedTuple):
    """Where an engine listens."""

    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> "Origin":
        """Read `http://host[:port]`."""
        parts = urlsplit(url)
        return cls(parts.hostname or "", parts.port or 80)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"
