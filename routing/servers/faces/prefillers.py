"""Which hosts a sidecar may send prompts to: a file, read again when it changes.

A header names the prefill endpoint, so without a list anybody who reaches the port could have
requests sent to any address. The file is a pool document (its endpoints that prefill), or text with
one `host:port` or `host` (every port of it) a line; `#` begins a remark.
"""

import logging
from collections.abc import Callable
from pathlib import Path

from routing.core.document import MAX_DOCUMENT_BYTES, DocumentError, parse_document
from routing.servers.origin import Origin

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
MOST_HOSTS = 10_000


class HostListError(ValueError):
    """The file cannot be used; the message says which line and why."""


class Prefillers:
    """The list in force. A file that becomes unreadable changes nothing: the last good one stays.

    `path` of `None` allows nobody. Raises OSError or HostListError when the file cannot be used at
    the start.
    """

    def __init__(self, path: Path | None, *, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now
        self._look_at = 0.0
        self._stamp: tuple[int, int, int] | None = None
        self._complaint = ""
        self._allowed: frozenset[Origin | str] = frozenset()
        self._bootstrap: dict[Origin, int] = {}
        if path is not None:
            self._stamp = _stamp(path)
            self._take(path)

    def allows(self, origin: Origin) -> bool:
        """Whether prompts may go there."""
        self._look()
        return origin in self._allowed or origin.host in self._allowed

    def bootstrap_port(self, origin: Origin) -> int | None:
        """Where SGLang's legs meet there, if the pool document says it."""
        return self._bootstrap.get(origin)

    def _look(self) -> None:
        """At most once a second, as a request comes: two system calls then."""
        now = self._now()
        if self._path is None or now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        try:
            stamp = _stamp(self._path)
            if stamp != self._stamp:
                self._stamp = stamp
                self._take(self._path)
        except (OSError, HostListError) as error:
            if str(error) != self._complaint:
                logger.warning("The list of prefill endpoints stays as it was: %s", error)
            self._complaint = str(error)

    def _take(self, path: Path) -> None:
        with path.open("rb") as file:
            raw = file.read(MAX_DOCUMENT_BYTES + 1)
        if raw.lstrip().startswith(b"{"):
            self._allowed, self._bootstrap = _of_document(raw)
        else:
            self._allowed, self._bootstrap = _of_lines(raw), {}
        self._complaint = ""


def _stamp(path: Path) -> tuple[int, int, int]:
    """Changes with content and rights, also when another file takes its place."""
    found = path.stat()
    return found.st_ctime_ns, found.st_size, found.st_ino


def _of_document(raw: bytes) -> tuple[frozenset[Origin | str], dict[Origin, int]]:
    try:
        document = parse_document(raw)
    except DocumentError as error:
        raise HostListError(f"It is no pool document: {error}") from error
    specs = [spec for spec in document.endpoints if spec.role != "decode"]
    ports = {Origin.of(spec.url): spec.bootstrap_port for spec in specs if spec.bootstrap_port}
    return frozenset(Origin.of(spec.url) for spec in specs), ports


def _of_lines(raw: bytes) -> frozenset[Origin | str]:
    try:
        lines = raw.decode().splitlines()
    except UnicodeDecodeError as error:
        raise HostListError(f"It is not UTF-8: {error}.") from error
    found: set[Origin | str] = set()
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        entry = host_port(text) or _host(text)
        if entry is None:
            raise HostListError(f"Line {number} is '{text[:80]}'; it must be host:port or host.")
        found.add(entry)
    if len(found) > MOST_HOSTS:
        raise HostListError(f"It names {len(found)} endpoints; {MOST_HOSTS} are read.")
    return frozenset(found)


def host_port(text: str) -> Origin | None:
    """Read `host:port`, with brackets around an IPv6 address; `None` for anything else."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or not 0 < int(port[:6]) < 65_536:
        return None
    plain = _host(host)
    return None if plain is None else Origin(plain, int(port))


def _host(text: str) -> str | None:
    if text.startswith("[") and text.endswith("]"):
        inner = text[1:-1]
        return inner.lower() if ":" in inner and set(inner.lower()) <= _IPV6 else None
    return text.lower() if text and set(text.lower()) <= _NAME else None


_IPV6 = frozenset("0123456789abcdef:.")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-.")
