"""The sidecar as a process before simulated engines: pairs, signals, wrong options."""

import signal
from pathlib import Path

import msgspec
import pytest

from routing.core.document import encode_document
from routing.servers.faces.sidecar_main import main
from tests.routing.servers.client import Answer, request
from tests.routing.servers.running import Running, Start, engine_arguments
from tests.routing.servers.scripted import CHAT, MODEL, Engine, answers, document
from tests.routing.testbed.helpers import metric

pytestmark = pytest.mark.processes
LONG = [{"role": "user", "content": "A long prompt. " * 300}]
SAME_ANSWER = {"temperature": 0, "max_tokens": 8}


def sidecar_arguments(engine: Running, listed: Path, *more: str) -> list[str]:
    return [
        *("routing.servers", "--sidecar", "--port", "0"),
        *("--engine", f"http://127.0.0.1:{engine.port}", "--prefillers", str(listed), *more),
    ]


def pool_document(engines: dict[str, Running]) -> bytes:
    specs = [Engine(name, answers, port=engine.port) for name, engine in engines.items()]
    written = document(specs)
    ports = [engine.ready["side_channel_port"] for engine in engines.values()]
    endpoints = tuple(
        msgspec.structs.replace(spec, bootstrap_port=port)
        for spec, port in zip(written.endpoints, ports, strict=True)
    )
    return encode_document(msgspec.structs.replace(written, endpoints=endpoints))


async def ask(sidecar: Running, prefiller: Running | None) -> Answer:
    body = {"model": MODEL, "messages": LONG, **SAME_ANSWER}
    headers = {"x-prefiller-host-port": f"127.0.0.1:{prefiller.port}"} if prefiller else {}
    return await request(sidecar.port, "POST", CHAT, body, headers=headers)


@pytest.mark.parametrize(
    ("flavor", "connector"), [("vllm", "nixlv2"), ("sglang", "sglang")], ids=["nixl", "sglang"]
)
async def test_pairs_answer_as_one_engine_alone_would(
    launch: Start, tmp_path: Path, flavor: str, connector: str
) -> None:
    more = ("--flavor", flavor)
    decode = await launch(*engine_arguments("decode", *more))
    first = await launch(*engine_arguments("prefill", *more))
    second = await launch(*engine_arguments("prefill", *more))
    listed = tmp_path / "pool.json"
    listed.write_bytes(pool_document({"first": first, "second": second}))
    sidecar = await launch(*sidecar_arguments(decode, listed, "--kv-connector", connector))

    pairs = [await ask(sidecar, prefiller) for prefiller in (first, second)]
    alone = await ask(second, None)

    assert [answer.status for answer in pairs] == [200, 200]
    texts = {answer.json["choices"][0]["message"]["content"] for answer in pairs}
    assert texts == {alone.json["choices"][0]["message"]["content"]}
    usage = pairs[0].json["usage"]
    # Nothing was cached at the prefill engine; the decode engine calls what it pulled cached.
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0
    page = (await request(decode.port, "GET", "/metrics")).body.decode()
    if flavor == "vllm":
        name, source = "vllm:prompt_tokens_by_source_total", "external_kv_transfer"
        assert metric(page, name, source=source) > 1000


async def test_it_says_when_it_is_ready_and_ends_by_a_signal(launch: Start, tmp_path: Path) -> None:
    decode = await launch(*engine_arguments("decode"))
    listed = tmp_path / "prefillers"
    listed.write_text("")
    sidecar = await launch(*sidecar_arguments(decode, listed))

    assert sidecar.ready["pid"] == sidecar.process.pid
    assert (await request(sidecar.port, "GET", "/health")).status == 200
    assert await sidecar.end(signal.SIGTERM) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ["--engine", "127.0.0.1:8200"],
        ["--engine", "http://127.0.0.1:notaport"],
        ["--kv-connector", "mooncake"],
        ["--stall-seconds", "0"],
        ["--body-megabytes", "nan"],
    ],
)
def test_a_wrong_option_is_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--sidecar", *wrong])

    assert caught.value.code == 2
    assert wrong[0] in capsys.readouterr().err


def test_a_list_that_is_not_there_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert main(["--sidecar", "--prefillers", str(tmp_path / "nobody")]) == 2
    assert "list of prefill endpoints" in caplog.text
