"""What does not fit together is refused with a sentence."""

from typing import Any

import msgspec
import pytest

from deploy.envoy.bootstrap import bootstrap
from deploy.envoy.wiring import Address, WiringError
from tests.deploy.envoy.wirings import pool, wiring

SALTED = pool(tenants=[{"tenant": "tenant-ana", "cache_salt": "s" * 32}])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"pickers": []}, "At least one", id="no-picker"),
        pytest.param({"documents": []}, "At least one", id="no-pool"),
        pytest.param(
            {"face": "ext_proc", "fails_open": True}, "full-duplex", id="open-in-full-duplex"
        ),
        pytest.param(
            {"documents": [pool(), pool(pool="other")], "fails_open": True},
            "main, other",
            id="open-for-two-pools",
        ),
        pytest.param({"documents": [SALTED], "fails_open": True}, "salt", id="open-without-salts"),
        pytest.param(
            {"documents": [pool("p", roles={"p": "prefill"})]}, "No endpoint", id="prefill-only"
        ),
        pytest.param({"picker_tls": True}, "Only the face ext_proc", id="tls-of-ext_authz"),
        pytest.param({"face": "ext_proc", "picker_ca": "ca"}, "speak TLS", id="authorities-alone"),
        pytest.param(
            {"face": "ext_proc", "picker_tls": True, "picker_name": "picker"},
            "proves nothing",
            id="name-without-authorities",
        ),
    ],
)
def test_it_says_why(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(WiringError, match=words):
        bootstrap(wiring(**changes))


def test_a_host_name_would_never_be_the_pickers_choice() -> None:
    document = pool("a")
    endpoint = msgspec.structs.replace(document.endpoints[0], url="http://engine-a:8000")
    named = msgspec.structs.replace(document, endpoints=(endpoint,))

    with pytest.raises(WiringError, match="host name engine-a"):
        bootstrap(wiring(documents=[named]))


@pytest.mark.parametrize("text", ["", "8080", "host:80", "10.0.0.1:0", "10.0.0.1:70000", "::1"])
def test_an_address_is_an_ip_and_a_port(text: str) -> None:
    with pytest.raises(WiringError):
        Address.of(text)
