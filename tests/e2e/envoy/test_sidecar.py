"""Prefill and decode on two engines behind a gateway that carries a request to one of them."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.e2e.envoy.binary import envoy_binary
from tests.e2e.envoy.processes import HERE, engine, envoy, router, told
from tests.e2e.envoy.stack import KEY, picker, pool_of
from tests.routing.servers.scripted import CHAT, MODEL, chat
from tests.routing.testbed.helpers import metric

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("envoy")]
LONG = [{"role": "user", "content": "A long prompt. " * 400}]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Two prefill engines, a decode engine behind its sidecar, a router, an Envoy for each face."""
    envoy_binary()
    folder = tmp_path_factory.mktemp("pair")
    with ExitStack() as stack:
        enter = stack.enter_context
        prefill = {name: enter(engine(role="prefill")) for name in ("p", "q")}
        decode = enter(engine(role="decode"))
        listed = folder / "prefillers"
        listed.write_text("\n".join(f"{HERE}:{port}" for port in prefill.values()))
        sidecar = enter(
            told(
                *("routing.servers", "--sidecar", "--port", "0", "--prefillers", str(listed)),
                *("--engine", f"http://{HERE}:{decode}", "--accept-legs"),
            )
        )["port"]
        pool = pool_of(
            prefill | {"d": sidecar},
            roles={"p": "prefill", "q": "prefill", "d": "decode"},
            # Splits every long prompt, whoever is idle.
            policy={"name": "round-robin"},
        )
        ready = enter(router(folder / "router", pool))
        urls = {"proxy": f"http://{HERE}:{ready['port']}"}
        for face in ("ext_authz", "ext_proc"):
            parts = {"documents": (pool,), "pickers": [picker(ready, face)], "face": face}
            urls[face] = enter(envoy(folder / face, **parts))
        yield {"urls": urls, "decode": decode, "prefill": tuple(prefill.values())}


def pulled(port: int) -> float:
    """Prompt tokens that a decode engine fetched from another one."""
    page = httpx.get(f"http://{HERE}:{port}/metrics", timeout=10).text
    return metric(page, "vllm:prompt_tokens_by_source_total", source="external_kv_transfer")


@pytest.mark.parametrize("face", ["proxy", "ext_authz", "ext_proc"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_long_prompt_is_computed_elsewhere_and_fetched(
    pair: dict[str, Any], face: str, stream: bool
) -> None:
    before = pulled(pair["decode"])
    body = chat(messages=LONG, max_tokens=4, stream=stream, user=f"{face}-{stream}")
    # Another begin each time, so that nothing of it is cached anywhere.
    body["messages"] = [{"role": "system", "content": body["user"]}, *LONG]

    answer = httpx.post(f"{pair['urls'][face]}{CHAT}", json=body, headers=KEY, timeout=20)

    assert answer.status_code == 200, answer.text
    assert "x-consort-degraded" not in answer.headers
    assert pulled(pair["decode"]) - before > 1000
    if not stream:
        assert answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


@pytest.mark.parametrize("face", ["proxy", "ext_authz"])
def test_a_long_input_of_responses_is_split_as_well(pair: dict[str, Any], face: str) -> None:
    before = pulled(pair["decode"])
    text = f"{face} " * 2000
    body = {"model": MODEL, "input": text, "max_output_tokens": 4}

    answer = httpx.post(f"{pair['urls'][face]}/v1/responses", json=body, headers=KEY, timeout=20)

    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["output_tokens"] == 4
    assert answer.json()["usage"]["input_tokens_details"]["cached_tokens"] == 0
    assert pulled(pair["decode"]) - before > 1000


@pytest.mark.parametrize("face", ["ext_authz", "ext_proc"])
def test_where_a_prompt_goes_is_the_pickers_to_say(pair: dict[str, Any], face: str) -> None:
    """The sidecar would refuse the address that the client names."""
    named = KEY | {"x-prefiller-host-port": "10.9.9.9:8000"}

    answer = httpx.post(f"{pair['urls'][face]}{CHAT}", json=chat(), headers=named, timeout=20)

    assert answer.status_code == 200, answer.text
