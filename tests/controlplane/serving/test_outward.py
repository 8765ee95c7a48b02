"""HTTP clients of serving."""

import httpx
import pytest

from controlplane.serving import outward


def test_a_client_has_time_outs_and_asks_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    with outward.client(httpx.Timeout(3.0, connect=1.0)) as client:
        assert (client.timeout.connect, client.timeout.read) == (1.0, 3.0)
        assert not client.trust_env
