"""Where the picker's choice cannot be reached, no other endpoint gets the request instead.

Another one may be in another jurisdiction, have another model, or keep another tenant's prompts.
"""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.envoy.processes import envoy, router
from tests.e2e.envoy.stack import KEY, WAYS, Gateways, picker, pool_of
from tests.routing.servers.scripted import CHAT, chat

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("envoy")]


OPEN = {"fails_open": True}


@pytest.mark.parametrize(
    "parts",
    [
        *(pytest.param(parts, id=way) for way, parts in sorted(WAYS.items())),
        pytest.param(WAYS["ext_authz"] | OPEN, id="ext_authz-open"),
        pytest.param(WAYS["ext_proc-buffered"] | OPEN, id="buffered-open"),
    ],
)
def test_an_endpoint_that_envoy_does_not_know_is_not_replaced(
    gateways: Gateways, tmp_path: Path, parts: dict[str, Any]
) -> None:
    """The pool document has changed and the bootstrap has not."""
    first, second = gateways.engines
    with router(tmp_path / "r", pool_of({"a": first})) as ready:
        old = {"documents": (pool_of({"b": second}),), "pickers": [picker(ready, parts["face"])]}
        with envoy(tmp_path / "e", **parts, **old) as url:
            answer = httpx.post(url + CHAT, json=chat(max_tokens=2), headers=KEY, timeout=20)

    assert answer.status_code == 503
