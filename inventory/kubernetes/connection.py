"""Where a cluster's API server is and how to show who we are: read from a reference.

A reference is `in-cluster`, or the name of a folder below the folder of credentials, which holds
either `kubeconfig`, or `server` and `token` and `ca.crt`. Files are read at every call, so that a
rotated secret works without a restart. Nothing is run, and nothing outside that folder is read.
"""

import hashlib
import ipaddress
import os
import re
import ssl
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from inventory.kubernetes.errors import CredentialsError

IN_CLUSTER = "in-cluster"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes puts the token of a pod's account (its documentation, "ServiceAccounts")."""
MOST_BYTES = 1024 * 1024
"""Of one file."""
_REFERENCE = re.compile(r"[a-z0-9]([-a-z0-9_.]{0,98}[a-z0-9])?")
_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Connection:
    """All that a client needs; secrets do not show in its text."""

    server: str
    """https, or http to this machine; without a slash at its end."""
    ca: str = field(default="", repr=False)
    """Certificates of the authority (PEM); empty: those of the system."""
    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    """Client certificate (PEM), with `key`."""
    key: str = field(default="", repr=False)
    tls_server_name: str = ""
    """Name that the server's certificate is for, where it is not the address."""
    skips_verification: bool = False
    """Only to this machine."""
    context: str = ""
    """Context of the kubeconfig, or the reference."""

    @property
    def fingerprint(self) -> str:
        """Changes with every part; says nothing about the secrets in it."""
        parts = (
            self.server, self.ca, self.token, self.certificate, self.key, self.tls_server_name,
            str(self.skips_verification), self.context,
        )  # fmt: skip
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def read_connection(
    reference: str, folder: Path | None = None, *, account: Path = SERVICE_ACCOUNT
) -> Connection:
    """The connection that a reference stands for, as its files are at this moment.

    `folder` is the folder of credentials; None: there is none. `account` is where the token of
    this pod's ServiceAccount is. Raises CredentialsError with a sentence for every rule.
    """
    if reference == IN_CLUSTER:
        return _in_cluster(account)
    place = _place(reference, folder)
    if (place / "kubeconfig").exists():
        from inventory.kubernetes.kubeconfig import read_kubeconfig

        return read_kubeconfig(read_file(place / "kubeconfig", place), place, reference)
    if not (place / "server").exists():
        raise CredentialsError(
            "credentials-incomplete",
            reference=reference,
        )
    server = read_file(place / "server", place).strip()
    ca = read_file(place / "ca.crt", place) if (place / "ca.crt").exists() else ""
    token = read_file(place / "token", place)
    return checked(Connection(server=server, ca=ca, token=token.strip(), context=reference))


def is_reference(text: str) -> bool:
    """Whether a text can be a reference; it says nothing about files."""
    return ".." not in text and _REFERENCE.fullmatch(text) is not None


def read_file(path: Path, within: Path) -> str:
    """A text file inside the folder `within`, also behind a link; at most `MOST_BYTES`.

    Raises CredentialsError for a file outside, one that is no regular file, or one too large.
    """
    name = path.name
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(within.resolve(strict=True)):
            raise CredentialsError(
                "file-outside",
                file=name,
            )
        content = _bytes(real, name)
    except OSError:
        raise CredentialsError("file-unreadable", file=name) from None
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise CredentialsError("file-not-text", file=name) from None


def checked(connection: Connection) -> Connection:
    """The connection, if its address and secrets are of a shape that may be used."""
    server = connection.server.rstrip("/")
    loopback = _check_server(server)
    if connection.skips_verification and not loopback:
        raise CredentialsError(
            "verification-off",
            server=server,
        )
    if connection.ca:
        _check_authority(connection.ca)
    if connection.token and not _TOKEN.fullmatch(connection.token):
        raise CredentialsError("token-unreadable")
    if bool(connection.certificate) != bool(connection.key):
        raise CredentialsError("certificate-without-key",
        )  # fmt: skip
    return Connection(
        server=server,
        ca=connection.ca,
        token=connection.token,
        certificate=connection.certificate,
        key=connection.key,
        tls_server_name=connection.tls_server_name,
        skips_verification=connection.skips_verification,
        context=connection.context,
    )


def _in_cluster(account: Path) -> Connection:
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port or not account.is_dir():
        raise CredentialsError(
            "not-in-cluster",
        )
    named = f"[{host}]" if ":" in host else host
    return checked(
        Connection(
            server=f"https://{named}:{port}",
            ca=read_file(account / "ca.crt", account),
            token=read_file(account / "token", account).strip(),
            context=IN_CLUSTER,
        )
    )


def _place(reference: str, folder: Path | None) -> Path:
    if not is_reference(reference):
        raise CredentialsError(
            "reference-not-a-name",
            reference=reference[:100],
        )
    if folder is None:
        raise CredentialsError(
            "no-credentials-folder",
        )
    place = folder / reference
    if not place.is_dir() or not place.resolve().is_relative_to(folder.resolve()):
        raise CredentialsError(
            "credentials-missing",
            reference=reference,
        )
    return place


def _bytes(path: Path, name: str) -> bytes:
    # Without O_NONBLOCK a named pipe would hold the worker until somebody writes into it.
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise CredentialsError("file-not-regular", file=name)
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise CredentialsError(
            "file-too-large",
            file=name,
            limit=MOST_BYTES,
        )
    return content


def _check_server(server: str) -> bool:
    """Whether the address is this machine; CredentialsError when it may not be used at all."""
    try:
        parts = urlsplit(server)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    usable = host and not (parts.username or parts.password or parts.query or parts.fragment)
    if not usable or parts.scheme not in {"https", "http"} or not server.isprintable():
        raise CredentialsError(
            "server-not-an-address",
        )
    loopback = is_loopback(host)
    if parts.scheme == "http" and not loopback:
        raise CredentialsError(
            "server-without-tls",
            server=server,
        )
    return loopback


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its address or as `localhost`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_authority(ca: str) -> None:
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=ca)
        loaded = context.cert_store_stats()["x509"]
    except (ssl.SSLError, ValueError):
        loaded = 0
    if not loaded:
        raise CredentialsError("authority-unreadable")
