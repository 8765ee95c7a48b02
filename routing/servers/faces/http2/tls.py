"""The certificate of a port of HTTP/2, which may change while it is served.

Gateways of the Inference Extension connect to their picker by TLS, usually without asking who it
is. A certificate is rotated by writing its files: the next handshake after a second has it.
"""

import logging
import ssl
from collections.abc import Callable
from pathlib import Path

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
MOST_FILE_BYTES = 1024 * 1024
PROTOCOL = "h2"

Stamp = tuple[tuple[int, int, int], ...]


class CertificateError(ValueError):
    """Files that cannot be used; the message says which and why."""


class Certificate:
    """The certificate in force, as a context for handshakes.

    Files that become unreadable or do not belong together change nothing: the last good pair
    stays. Raises CertificateError when they cannot be used at the start.
    """

    def __init__(
        self, chain: Path, key: Path, *, now: Callable[[], float], protocol: str = PROTOCOL
    ) -> None:
        self._chain, self._key = chain, key
        self._protocol = protocol
        self._now = now
        self._look_at = now() + LOOK_SECONDS
        self._complaint = ""
        self._stamp = self._stamp_now()
        self._context = self._read()

    def context(self) -> ssl.SSLContext:
        """For the next handshake; looks at the files at most once a second."""
        now = self._now()
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            self._look()
        return self._context

    def _look(self) -> None:
        try:
            stamp = self._stamp_now()
            if stamp == self._stamp and not self._complaint:
                return
            # Of two files one may have been written before the other: what failed is tried again.
            self._context, self._stamp, self._complaint = self._read(), stamp, ""
            logger.info("The certificate of %s was read again.", self._chain)
        except CertificateError as error:
            if str(error) != self._complaint:
                logger.warning("The certificate stays as it was: %s", error)
            self._complaint = str(error)

    def _stamp_now(self) -> Stamp:
        try:
            found = [path.stat() for path in (self._chain, self._key)]
        except OSError as error:
            raise CertificateError(_unreadable(error)) from error
        return tuple((one.st_mtime_ns, one.st_size, one.st_ino) for one in found)

    def _read(self) -> ssl.SSLContext:
        for path in (self._chain, self._key):
            _check_file(path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols([self._protocol])
        # Work that a peer could ask for again and again, and a way to guess at secrets.
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        try:
            # A key behind a password would ask the terminal for it.
            context.load_cert_chain(self._chain, self._key, password=_no_password)
        except (ssl.SSLError, CertificateError) as error:
            raise CertificateError(
                f"{self._chain} and {self._key} are not a certificate and its private key, both"
                f" as PEM: {_reason(error)}."
            ) from error
        except OSError as error:
            raise CertificateError(_unreadable(error)) from error
        return context


def _check_file(path: Path) -> None:
    """Raise CertificateError for what is no file of a sensible size."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_FILE_BYTES + 1)
    except OSError as error:
        raise CertificateError(_unreadable(error)) from error
    if len(raw) > MOST_FILE_BYTES:
        raise CertificateError(f"{path} is larger than {MOST_FILE_BYTES} bytes.")


def _unreadable(error: OSError) -> str:
    return f"{error.filename} cannot be read: {error.strerror}."


def _no_password() -> str:
    raise CertificateError("the key needs a password, so give it without one")


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason or error).replace("_", " ").lower()
