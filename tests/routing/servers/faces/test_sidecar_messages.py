"""Headers that pass a sidecar, and those that stay there."""

from routing.servers.http import Connection
from routing.servers.http_parts import HttpRequest
from tests.routing.servers.faces.pod import Pod
from tests.routing.servers.scripted import (
    Engine,
    chat,
)


async def test_headers_about_routing_or_the_connection_stay_here(pod: Pod) -> None:
    prefill, decode = await pod.engine("p"), await pod.engine("d")
    await pod.start()

    await pod.ask(
        chat(),
        by=pod.at("p"),
        x_gateway_destination_endpoint="10.0.0.1:80",
        x_llm_d_slo_ttft_ms="5",
        x_consort_priority="1",
        te="trailers",
        connection="keep-alive, x-named",
        x_named="1",
        x_data_parallel_rank="2",
    )

    allowed = {b"host", b"content-length", b"x-request-id"}
    assert set(prefill.headers[0]) == allowed
    assert set(decode.headers[0]) == allowed | {b"x-data-parallel-rank"}


async def test_the_engines_headers_reach_the_client(pod: Pod) -> None:
    async def says(engine: Engine, received: HttpRequest, client: Connection) -> None:
        client.respond(200, b"{}", headers=b"x-from-engine: 1\r\nkeep-alive: timeout=5\r\n")

    await pod.engine("d", says)
    await pod.start()

    answer = await pod.ask(chat())

    assert answer.headers["x-from-engine"] == "1"
    assert "keep-alive" not in answer.headers
