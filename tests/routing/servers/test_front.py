"""The admin port of a router with several processes is that of one router."""

from pathlib import Path

import pytest

from tests.routing.servers.client import request
from tests.routing.servers.running import (
    ADMIN,
    Start,
    ask,
    engine_arguments,
    push,
    start_several,
    state_of,
)
from tests.routing.servers.scripted import chat

pytestmark = pytest.mark.processes


async def test_probes_routes_and_refusals_are_those_of_one_router(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, tmp_path / "state", token_file)
    port = router.admin_port
    empty = await request(port, "GET", "/readyz")
    await push(router, {"a": engine})

    ready = await request(port, "GET", "/readyz?verbose")
    live = await request(port, "GET", "/livez")
    stranger = await request(port, "GET", "/admin/state")
    unknown = await request(port, "GET", "/admin/nothing", headers=ADMIN)
    endpoint = await request(port, "POST", "/admin/endpoints/zzz/drain", headers=ADMIN)
    reset = await request(port, "POST", "/admin/reset-knowledge", {"pool": "main"}, headers=ADMIN)
    wrong = await request(port, "POST", "/admin/reset-knowledge", {"pool": "other"}, headers=ADMIN)
    beyond = await request(port, "POST", "/admin/usage-segments/99/acknowledge", headers=ADMIN)

    assert [empty.status, ready.status, live.status] == [503, 200, 200]
    assert b"every process serves" in ready.body
    assert (stranger.status, unknown.status, beyond.status) == (401, 404, 409)
    assert (endpoint.status, endpoint.json["allowed"]) == (404, ["a"])
    assert (reset.status, reset.json) == (200, {"pool": "main", "state": "reset"})
    assert (wrong.status, wrong.json["allowed"]) == (404, ["main"])


async def test_decisions_of_all_processes_have_one_sequence_of_numbers(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, tmp_path / "state", token_file)
    await push(router, {"a": engine}, recording={"sample_rate": 1.0})
    for _ in range(6):
        assert (await ask(router, chat(max_tokens=2))).status == 200
    await state_of(router)

    page = await request(
        router.admin_port, "GET", "/admin/decisions?after=0&limit=100", headers=ADMIN
    )

    numbers = [line["number"] for line in page.json["decisions"]]
    assert len(numbers) >= 6
    assert numbers == list(range(1, len(numbers) + 1))
    assert page.json["last"] == numbers[-1]


async def test_a_question_is_answered_by_the_process_that_knows_and_shadows_are_summed(
    launch: Start, tmp_path: Path, token_file: Path
) -> None:
    engine = await launch(*engine_arguments("both"))
    router = await start_several(launch, tmp_path / "state", token_file)
    recording = {"sample_rate": 1.0, "shadow_policies": ["random"], "shadow_rate": 1.0}
    await push(router, {"a": engine}, recording=recording)
    for _ in range(4):
        assert (await ask(router, chat(max_tokens=2))).status == 200
    await state_of(router)
    path = "/admin/decisions?after=0&limit=100&kind=chosen"
    page = (await request(router.admin_port, "GET", path, headers=ADMIN)).json
    question = {
        "pool": "main", "tenant": "t", "prompt_tokens": 9, "like": page["decisions"][0]["id"],
    }  # fmt: skip

    explained = await request(router.admin_port, "POST", "/admin/explain", question, headers=ADMIN)

    assert explained.status == 200, explained.body
    assert page["shadow"]["main"]["random"]["asked"] == 4
    assert page["sample_rates"] == {"main": 1.0}
