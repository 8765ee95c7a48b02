"""No client chooses where Envoy connects to, however it writes the header."""

from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.envoy.mirror import Mirror
from tests.e2e.envoy.stack import KEY, WAYS, Gateways
from tests.routing.servers.scripted import CHAT, chat

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("envoy")]

NAMES = (
    "x-gateway-destination-endpoint",
    "X-Gateway-Destination-Endpoint",
    "x-gateway-destination-endpoint-subset",
    "x-gateway-destination-endpoint-served",
    "x-prefiller-host-port",
    "X-Data-Parallel-Host-Port",
)


@pytest.fixture
def trap() -> Iterator[Mirror]:
    """A server that is no endpoint of any pool."""
    with Mirror() as server:
        yield server


@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.parametrize("path", ["/v1/models", CHAT])
def test_an_address_that_is_no_endpoint_is_never_reached(
    gateways: Gateways, trap: Mirror, way: str, path: str
) -> None:
    address = f"127.0.0.1:{trap.port}"
    spoofs = [{name: address} for name in NAMES]
    spoofs.append(dict.fromkeys(NAMES, address))
    with httpx.Client(base_url=gateways.urls[way], headers=KEY, timeout=20) as client:
        statuses = []
        for spoof in spoofs:
            body = None if path == "/v1/models" else chat(max_tokens=2)
            method = "GET" if body is None else "POST"
            statuses.append(client.request(method, path, json=body, headers=spoof).status_code)

    assert statuses == [200] * len(spoofs)
    assert trap.hits == 0


@pytest.mark.parametrize("way", sorted(WAYS))
def test_a_client_does_not_choose_among_endpoints_either(
    gateways: Gateways, trap: Mirror, way: str
) -> None:
    """What an engine is sent names the picker's choice, not the client's."""
    wanted = {"x-gateway-destination-endpoint": f"127.0.0.1:{gateways.engines[0]}"}
    answer = httpx.post(
        gateways.urls[way] + CHAT, json=chat(model="mirror"), headers=KEY | wanted, timeout=20
    )

    seen = answer.json()["seen"]["headers"]
    assert seen["x-gateway-destination-endpoint"] == f"127.0.0.1:{gateways.mirror.port}"
    assert seen.get("x-prefiller-host-port") is None
