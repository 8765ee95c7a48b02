"""A refusal for want of capacity reaches the client through Envoy, and never opens the gateway."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.envoy.processes import ADMIN, HERE, envoy, router
from tests.e2e.envoy.stack import KEY, WAYS, Gateways, picker, pool_of
from tests.routing.servers.scripted import CHAT, chat

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("envoy")]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(WAYS["ext_authz"], id="ext_authz"),
        pytest.param(WAYS["ext_authz"] | {"fails_open": True}, id="ext_authz-open"),
        pytest.param(WAYS["ext_proc"], id="ext_proc"),
        pytest.param(WAYS["ext_proc-buffered"] | {"fails_open": True}, id="buffered-open"),
    ],
)
def test_nobody_serves_what_no_endpoint_may(
    gateways: Gateways, tmp_path: Path, parts: dict[str, Any]
) -> None:
    pool = pool_of({"a": gateways.engines[0]})
    with router(tmp_path / "r", pool) as ready:
        drain = f"http://{HERE}:{ready['admin_port']}/admin/endpoints/a/drain"
        httpx.post(drain, headers=ADMIN, timeout=20).raise_for_status()
        more = parts | {"documents": (pool,), "pickers": [picker(ready, parts["face"])]}
        with envoy(tmp_path / "e", **more) as url:
            answer = httpx.post(url + CHAT, json=chat(max_tokens=2), headers=KEY, timeout=20)

    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/json")
    assert answer.headers["x-llm-d-request-dropped-reason"] == "rejected-no-endpoints"
    assert answer.json()["error"]["message"]
