"""What a bootstrap is made from: pool documents, a face, addresses; and what does not fit."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from routing.core.document import EndpointSpec, PoolDocument
from routing.servers.origin import Origin

Face = Literal["ext_authz", "ext_proc"]
BodyMode = Literal["full-duplex", "buffered"]


class WiringError(ValueError):
    """Parts that cannot work together; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address and a port."""

    ip: str
    port: int

    @classmethod
    def of(cls, text: str) -> "Address":
        """Read `ip:port` or `[ip]:port`. Raises WiringError."""
        ip, _, port = text.rpartition(":")
        ip = ip.removeprefix("[").removesuffix("]")
        if not port.isdigit() or not 0 < int(port) < 65_536 or not is_ip(ip):
            raise WiringError(f"'{text}' is no address; write it as ip:port, IPv6 as [ip]:port.")
        return cls(ip, int(port))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Checked by `check`."""

    documents: Sequence[PoolDocument]
    face: Face
    listen: Address
    pickers: Sequence[Address]
    """The face's port of every process of every router: Envoy keeps one HTTP/2 connection to each
    from a worker, so ports that processes share would not spread."""
    body_mode: BodyMode = "full-duplex"
    """Of ext_proc."""
    fails_open: bool = False
    """Without a picker, requests go on to any endpoint, without keys, limits and residency."""
    sees_answers: bool = False
    """ext_proc gets every chunk of an answer, for usage and times; costs CPU per event."""
    picker_tls: bool = False
    """The pickers speak TLS (ext_proc)."""
    picker_ca: str | None = None
    """File, as Envoy sees it, with the authorities that vouch for them; `None` believes anybody."""
    picker_name: str | None = None
    """DNS name that their certificate must have; needs `picker_ca`."""
    admin: Address | None = None

    @property
    def endpoints(self) -> list[EndpointSpec]:
        """Where requests may go: everything but prefill ends."""
        return [
            endpoint
            for document in self.documents
            for endpoint in document.endpoints
            if endpoint.role != "prefill"
        ]

    @property
    def picker_seconds(self) -> float:
        """How long a picker may take: the longest time in a queue, and a little more."""
        waits = [
            seconds
            for document in self.documents
            for seconds in (
                document.admission.queue_seconds,
                *(band.queue_seconds or 0.0 for band in document.admission.bands),
            )
        ]
        return max(waits) + PICKER_SECONDS

    @property
    def body_bytes(self) -> int:
        """The longest body that a pool reads."""
        return max(document.limits.body_bytes for document in self.documents)

    def check(self) -> None:
        """Raises WiringError."""
        if not self.documents or not self.pickers:
            raise WiringError("At least one pool document and one picker are needed.")
        self._check_failure()
        self._check_tls()
        for endpoint in self.endpoints:
            address_of(endpoint)
        if not self.endpoints:
            raise WiringError("No endpoint of the pool takes requests; prefill ends do not.")

    def _check_tls(self) -> None:
        if self.picker_tls and self.face != "ext_proc":
            raise WiringError("Only the face ext_proc speaks TLS; ext_authz is plain HTTP.")
        if self.picker_ca and not self.picker_tls:
            raise WiringError("Authorities are for pickers that speak TLS: say that they do.")
        if self.picker_name and not self.picker_ca:
            raise WiringError(
                "A name proves nothing without authorities that vouch for it: name their file, too."
            )

    def _check_failure(self) -> None:
        if not self.fails_open:
            return
        if self.face == "ext_proc" and self.body_mode == "full-duplex":
            raise WiringError(
                "Fail-open does not work with ext_proc in full-duplex mode: when the picker is"
                " found to be down the body is gone already, and Envoy answers 500. Take body mode"
                " 'buffered' or the face 'ext_authz'."
            )
        if len(self.documents) > 1:
            names = ", ".join(document.pool for document in self.documents)
            raise WiringError(
                f"Fail-open needs one pool, and these are {names}: without a picker nobody knows"
                " which model is where. Give each pool a gateway of its own."
            )
        salted = [spec.tenant for one in self.documents for spec in one.tenants if spec.cache_salt]
        if salted:
            raise WiringError(
                f"Fail-open would send requests of {', '.join(salted)} on without the salt that"
                " keeps their cache apart from others'. Fail closed, or take the salt away."
            )


PICKER_SECONDS = 5.0
"""For a decision, beyond the time in the queue."""


def address_of(endpoint: EndpointSpec) -> Address:
    """Where an endpoint listens. Raises WiringError for a host name."""
    origin = Origin.of(endpoint.url)
    if not is_ip(origin.host):
        raise WiringError(
            f"Endpoint {endpoint.id} has the host name {origin.host}; a picker names IP addresses,"
            " and Envoy compares them with those of its cluster. Write the address into the pool"
            " document."
        )
    return Address(origin.host, origin.port)


def is_ip(text: str) -> bool:
    """Whether a text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
