"""Where a request comes from. Callers can write any header, so only proxies are believed."""

import ipaddress
from collections.abc import Sequence


def client_address(peer: str, forwarded: str, *, trusted: Sequence[str]) -> str:
    """Address of the client: the peer, or behind trusted proxies the last hop that is not one.

    `forwarded` is X-Forwarded-For, read right to left; an entry that is no address ends the walk.
    A peer without an address (a unix socket) gives "".
    """
    networks = [ipaddress.ip_network(network) for network in trusted]
    address = peer if _parsed(peer) else ""
    for hop in reversed(forwarded.split(",")):
        if not _is_in(address, networks) or _parsed(hop.strip()) is None:
            break
        address = hop.strip()
    return address


def _is_in(text: str, networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    address = _parsed(text)
    return address is not None and any(address in network for network in networks)


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
