"""Calls to one API server over the library's client, with bounds that the library does not set.

Imported only when a cluster is asked: the module brings in `kubernetes`.

- Nothing is tried again and no redirection is followed: who calls knows what may be repeated.
- A call ends by its time-out, also when the server sends a byte now and then.
- A body above `MOST_BYTES` is not read to its end.
- Proxies of the environment are not used, and certificates are always checked.
"""

import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from inventory.kubernetes import answers
from inventory.kubernetes.connection import Connection
from inventory.kubernetes.errors import AnswerError, ClusterUnavailableError, CredentialsError

MOST_BYTES = 16 * 1024 * 1024
"""Of one answer: a page of 200 objects of 80 KB each; etcd refuses objects above 1.5 MB."""
MOST_LINE_BYTES = 4 * 1024 * 1024
MOST_REFUSAL_BYTES = 256 * 1024
CONNECT_SECONDS = 5.0
_PIECE = 64 * 1024
AGENT = "consort"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Call:
    """One request: method, path below the server's address, and what goes with it."""

    method: str
    path: str
    query: Mapping[str, str | int | bool] | None = None
    body: Any = None
    content_type: str = JSON
    in_list: bool = False
    """A list or a watch, where 410 and 504 mean that its place is gone."""


class Wire:
    """A client of the library for one connection; safe in several threads."""

    def __init__(self, connection: Connection, *, timeout: float) -> None:
        self.timeout = timeout
        self._api = _client(connection)

    def json(self, call: Call) -> Any:
        """The parsed answer. Raises ClusterError."""
        return answers.parse(self.read(call))

    def read(self, call: Call, most: int = MOST_BYTES) -> bytes:
        """The answer's bytes, at most `most`. Raises ClusterError."""
        deadline = time.monotonic() + self.timeout
        response = self._open(call, self.timeout)
        try:
            return _whole(response, most, deadline)
        finally:
            _give_back(response)

    def lines(self, call: Call, seconds: float) -> Iterator[bytes]:
        """Lines of a stream until the server ends it, it is cut, or the seconds are over."""
        deadline = time.monotonic() + seconds
        response = self._open(call, seconds)
        try:
            yield from _lines(response, deadline)
        finally:
            response.close()

    def close(self) -> None:
        """Close the connections that are kept."""
        self._api.rest_client.close()

    def _open(self, call: Call, seconds: float) -> Any:
        try:
            response = self._send(call, seconds)
        except (HTTPError, ApiException, OSError) as error:
            raise _unreachable(error) from None
        if response.status < 300:
            if (response.headers.get("content-encoding") or "identity").lower() != "identity":
                response.close()
                raise AnswerError("The answer is compressed, which was not asked for.")
            return response
        try:
            body = _whole(response, MOST_REFUSAL_BYTES, time.monotonic() + self.timeout)
        except (AnswerError, ClusterUnavailableError):
            body = b""
        finally:
            response.close()
        headers = {name.lower(): value for name, value in response.headers.items()}
        raise answers.refusal(response.status, headers, _loose(body), in_list=call.in_list)

    def _send(self, call: Call, seconds: float) -> Any:
        """The library's own request, whose answer is not read yet."""
        headers = {"Accept": JSON}
        if call.method != "GET":
            headers["Content-Type"] = call.content_type
        request = self._api.param_serialize(
            call.method,
            call.path,
            query_params=[(name, _plain(value)) for name, value in (call.query or {}).items()],
            header_params=headers,
            body=call.body,
            auth_settings=[],
        )
        limits = (min(CONNECT_SECONDS, seconds), seconds)
        return self._api.call_api(*request, _request_timeout=limits).response


class _Patient:
    """A connection on which all headers come within the time of one read, or it is shut.

    The library's time-out begins anew with every byte, so a server that sends a header's letter now
    and then would hold a worker for hours.
    """

    def getresponse(self) -> Any:
        """The response with its headers."""
        sock = self.sock  # type: ignore[attr-defined]
        seconds = sock.gettimeout() if sock is not None else None
        if seconds is None:
            return super().getresponse()  # type: ignore[misc]
        late = threading.Event()
        end = threading.Timer(seconds, _shut, [sock, late])
        end.daemon = True
        end.start()
        try:
            return super().getresponse()  # type: ignore[misc]
        except Exception:
            if late.is_set():
                raise TimeoutError("The headers took too long.") from None
            raise
        finally:
            end.cancel()


class _HttpConnection(_Patient, HTTPConnection):
    pass


class _HttpsConnection(_Patient, HTTPSConnection):
    pass


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


def _shut(sock: socket.socket, late: threading.Event) -> None:
    late.set()
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _client(connection: Connection) -> ApiClient:
    configuration = Configuration(host=connection.server, proxy="", no_proxy="*")
    api = ApiClient(configuration)
    api.user_agent = AGENT
    if connection.token:
        api.set_default_header("Authorization", f"Bearer {connection.token}")
    pools = urllib3.PoolManager(
        maxsize=4,
        retries=urllib3.Retry(total=0, redirect=0, raise_on_redirect=False),
        **_tls(connection),
    )
    pools.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
    api.rest_client.pool_manager = pools
    return api


def _tls(connection: Connection) -> dict[str, Any]:
    """Arguments of the pool for an address with https; nothing for one without."""
    if not connection.server.startswith("https:"):
        return {}
    context = ssl.create_default_context(cadata=connection.ca or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if connection.skips_verification:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if connection.certificate:
        _load_certificate(context, connection)
    named: dict[str, Any] = {"ssl_context": context}
    if connection.tls_server_name:
        named["server_hostname"] = connection.tls_server_name
    return named


def _load_certificate(context: ssl.SSLContext, connection: Connection) -> None:
    """OpenSSL reads keys from files only: they stand on the disk for that moment, mode 0600."""
    with tempfile.TemporaryDirectory(prefix="consort-") as folder:
        path = Path(folder) / "client.pem"
        path.touch(mode=0o600)
        path.write_text(f"{connection.certificate}\n{connection.key}\n")
        try:
            context.load_cert_chain(path)
        except (ssl.SSLError, OSError, ValueError):
            raise CredentialsError(
                "certificate-and-key-differ",
            ) from None


def _whole(response: Any, most: int, deadline: float) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := _piece(response, deadline):
        size += len(piece)
        if size > most:
            response.close()
            raise AnswerError(f"The answer has more than {most} bytes; it was not read on.")
        pieces.append(piece)
    return b"".join(pieces)


def _lines(response: Any, deadline: float) -> Iterator[bytes]:
    rest = b""
    while True:
        try:
            piece = _piece(response, deadline)
        except ClusterUnavailableError:
            return  # cut, or silent until the end: who watches lists again
        if not piece:
            return
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line for line in whole if line.strip())
        if len(rest) > MOST_LINE_BYTES:
            raise AnswerError(f"A line of the watch has more than {MOST_LINE_BYTES} bytes.")


def _piece(response: Any, deadline: float) -> bytes:
    """What has come, b"" at the end. Raises ClusterUnavailableError when time is up."""
    if time.monotonic() > deadline:
        response.close()
        raise ClusterUnavailableError("The API server took too long over its answer.")
    try:
        return response.read1(_PIECE, decode_content=False) or b""
    except (HTTPError, OSError, ValueError) as error:
        response.close()
        raise _unreachable(error) from None


def _give_back(response: Any) -> None:
    """A response that was read to its end returns its connection; any other closes it."""
    response.release_conn()


def _loose(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _plain(value: str | float | bool) -> str:  # noqa: FBT001
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unreachable(error: Exception) -> ClusterUnavailableError:
    """The sentence for what stopped a call, without the library's wrapping."""
    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, Exception) else error
    text = str(cause)
    if isinstance(error, ApiException):
        text = str(error.reason)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return ClusterUnavailableError(
            "The API server shows a certificate that the given authority did not sign, or that is "
            f"for another name ({_tail(text)})."
        )
    # In urllib3 a refused connection is a kind of time-out.
    timed_out = isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError)
    if timed_out and not isinstance(cause, urllib3.exceptions.NewConnectionError):
        return ClusterUnavailableError("The API server did not answer in time.")
    return ClusterUnavailableError(f"The API server cannot be reached: {_tail(text)}.")


def _tail(text: str) -> str:
    """The last part of a chain of messages, where the reason stands."""
    return text.rsplit(": ", 1)[-1].strip(" .()'\"")[:200]
