"""Where a request comes from."""

import pytest

from controlplane.common.addresses import client_address

PROXIES = ["10.0.0.0/8", "2001:db8::/32"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.7", "", "203.0.113.7"),
        ("203.0.113.7", "198.51.100.1", "203.0.113.7"),
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "192.0.2.1, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "nonsense", "10.0.0.1"),
        ("10.0.0.1", "nonsense, 10.0.0.2", "10.0.0.2"),
        ("2001:db8::1", "2001:db9::1", "2001:db9::1"),
        ("", "198.51.100.1", ""),
        ("unix:", "", ""),
    ],
)
def test_only_proxies_are_believed(peer: str, forwarded: str, address: str) -> None:
    assert client_address(peer, forwarded, trusted=PROXIES) == address
