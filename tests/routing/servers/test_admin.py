"""The admin port: documents in, state out."""

import json

import pytest

from routing.core.document import encode_document
from tests.routing.servers.client import RawClient, request
from tests.routing.servers.scripted import MODEL, SECRET, Stage, chat, document, key


async def test_a_document_is_accepted_with_its_hash_and_serves_at_once(stage: Stage) -> None:
    engine = await stage.engine("a")

    accepted = await stage.push(document([engine], version=7))
    answer = await stage.ask(chat())

    assert accepted.json["state"] == "accepted"
    assert (accepted.json["pool"], accepted.json["version"]) == ("main", 7)
    assert len(accepted.json["hash"]) == 64
    assert answer.status == 200


async def test_the_same_document_again_is_accepted_again(stage: Stage) -> None:
    pushed = document([], version=2)

    first, second = await stage.push(pushed), await stage.push(pushed)

    assert (second.status, second.json) == (200, first.json)


@pytest.mark.parametrize("version", [1, 2], ids=["older", "same-number-other-content"])
async def test_a_version_that_is_not_newer_is_refused(stage: Stage, version: int) -> None:
    await stage.push(document([], version=2))

    answer = await stage.push(document([], version=version, author="somebody else"))

    assert answer.status == 409
    assert (answer.json["code"], answer.json["version"]) == ("version-not-newer", 2)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        pytest.param({"colour": "red"}, "/colour", id="unknown-field"),
        pytest.param({"version": 0}, "/version", id="out-of-range"),
        pytest.param({"models": []}, "/models", id="empty-list"),
    ],
)
async def test_a_refused_document_names_the_field_and_changes_nothing(
    stage: Stage, change: dict[str, object], pointer: str
) -> None:
    engine = await stage.engine("a")
    await stage.push(document([engine]))
    fields = json.loads(encode_document(document([engine], version=2))) | change

    answer = await stage.push(json.dumps(fields).encode())

    assert answer.status == 422
    assert answer.json["code"] == "document-refused"
    assert answer.json["pointer"] == pointer
    assert (await stage.ask(chat())).status == 200
    assert (await stage.admin("GET", "/admin/state")).json["documents"][0]["version"] == 1


async def test_an_engine_without_a_plugin_is_refused_with_the_known_ones(stage: Stage) -> None:
    engine = await stage.engine("a")
    fields = json.loads(encode_document(document([engine])))
    fields["endpoints"][0]["engine"] = "trtllm"

    answer = await stage.push(json.dumps(fields).encode())

    assert (answer.status, answer.json["pointer"]) == (422, "/endpoints/0/engine")
    assert answer.json["allowed"] == ["sglang", "vllm"]


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff"], ids=["empty", "half", "list", "bytes"])
async def test_what_is_no_document_is_refused(stage: Stage, raw: bytes) -> None:
    answer = await stage.push(raw)

    assert answer.status == 422
    assert answer.json["pointer"] == ""


async def test_a_document_over_the_bound_is_refused(stage: Stage) -> None:
    answer = await stage.push(b"x" * (8 * 1024 * 1024 + 2))

    assert answer.status == 413


async def test_the_last_good_documents_are_loaded_at_the_next_start(stage: Stage) -> None:
    engine = await stage.engine("a")
    await stage.push(document([engine], version=3))
    await stage.push(document([engine], version=5, pool="odd/../name", keys=[key("b", "sk-b")]))
    await stage.router.stop()

    await stage.start_router()
    answer = await stage.ask(chat())

    assert answer.status == 200
    documents = (await stage.admin("GET", "/admin/state")).json["documents"]
    assert {(one["pool"], one["version"]) for one in documents} == {("main", 3), ("odd/../name", 5)}


async def test_a_kept_document_that_became_unreadable_does_not_stop_the_start(stage: Stage) -> None:
    await stage.push(document([], version=3))
    await stage.router.stop()
    for path in (stage.folder / "documents").glob("*.json"):
        path.write_bytes(b"{broken")

    await stage.start_router()

    assert (await stage.admin("GET", "/admin/state")).json["documents"] == []


async def test_files_with_secrets_are_readable_by_their_owner_only(stage: Stage) -> None:
    await stage.push(document([], version=3))

    (path,) = (stage.folder / "documents").glob("*.json")

    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="none"),
        pytest.param({"authorization": "Bearer wrong"}, id="wrong"),
        pytest.param({"authorization": f"Bearer {SECRET}"}, id="an-inference-key"),
        pytest.param({"authorization": "Basic YTpi"}, id="basic"),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/admin/pool-document"),
        ("GET", "/admin/state"),
        ("GET", "/admin/usage-segments"),
        ("POST", "/admin/usage-segments/1/acknowledge"),
        ("GET", "/admin/decisions"),
        ("POST", "/admin/reset-knowledge"),
        ("POST", "/admin/endpoints/a/drain"),
        ("GET", "/admin/unknown"),
    ],
)
async def test_without_the_token_the_admin_port_says_nothing(
    stage: Stage, method: str, path: str, headers: dict[str, str]
) -> None:
    answer = await request(stage.router.admin_port, method, path, b"{}", headers=headers)

    assert answer.status == 401
    assert answer.json["code"] == "not-authorized"


async def test_a_large_document_without_the_token_is_refused_before_it_is_read(
    stage: Stage,
) -> None:
    async with RawClient(stage.router.admin_port) as client:
        await client.send(
            b"PUT /admin/pool-document HTTP/1.1\r\nhost: t\r\ncontent-length: 4000000\r\n\r\n"
        )
        answer = await client.answer()

    assert answer.status == 401
    assert answer.json["code"] == "not-authorized"


async def test_unknown_paths_and_methods_are_told_apart(stage: Stage) -> None:
    missing = await stage.admin("GET", "/admin/nothing")
    wrong = await stage.admin("GET", "/admin/pool-document")

    assert missing.status == 404
    assert (wrong.status, wrong.json["allowed"]) == (405, ["PUT"])


async def test_readiness_follows_the_document_and_the_end(stage: Stage) -> None:
    before = await request(stage.router.admin_port, "GET", "/readyz")
    await stage.push(document([]))
    loaded = await request(stage.router.admin_port, "GET", "/readyz")
    verbose = await request(stage.router.admin_port, "GET", "/readyz?verbose")
    stage.router.state.is_draining = True
    draining = await request(stage.router.admin_port, "GET", "/readyz?verbose")
    live = await request(stage.router.admin_port, "GET", "/livez")

    assert [before.status, loaded.status, draining.status, live.status] == [503, 200, 503, 200]
    assert b"ok  document loaded" in verbose.body
    assert b"NOT not draining" in draining.body


async def test_state_shows_pools_requests_and_usage(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    await stage.ask(chat())
    await stage.ask({"model": "none"})
    await stage.usage(1)

    state = (await stage.admin("GET", "/admin/state")).json

    assert state["router"] == "r1"
    assert state["leases_open"] == 0
    assert state["requests"] == {"total": 2, "failed": 0, "by_status": {"200": 1, "404": 1}}
    assert state["usage"]["last_sequence"] == state["usage"]["closed_through"] == 1
    assert [one["id"] for one in state["pools"]["main"]["endpoints"]] == ["a"]


async def test_a_drained_endpoint_gets_nothing_more_until_its_instance_changes(
    stage: Stage,
) -> None:
    first, second = await stage.engine("a"), await stage.engine("b")
    await stage.load()

    drained = await stage.admin("POST", "/admin/endpoints/a/drain")
    for _ in range(4):
        await stage.ask(chat())
    await stage.push(document([first, second], version=2))
    for _ in range(4):
        await stage.ask(chat())

    assert drained.json == {"endpoint": "a", "state": "draining", "pools": ["main"]}
    assert (len(first.requests), len(second.requests)) == (0, 8)

    fresh = json.loads(encode_document(document([first, second], version=3)))
    fresh["endpoints"][0]["instance"] = "restarted"
    await stage.push(json.dumps(fresh).encode())
    for _ in range(4):
        await stage.ask(chat())

    assert len(first.requests) >= 1


async def test_draining_what_is_unknown_names_what_is_known(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()

    answer = await stage.admin("POST", "/admin/endpoints/zzz/drain")

    assert (answer.status, answer.json["allowed"]) == (404, ["a"])


async def test_knowledge_can_be_reset(stage: Stage) -> None:
    await stage.load()

    good = await stage.admin("POST", "/admin/reset-knowledge", {"pool": "main"})
    unknown = await stage.admin("POST", "/admin/reset-knowledge", {"pool": "other"})
    wrong = await stage.admin("POST", "/admin/reset-knowledge", {"poool": "main"})

    assert (good.status, unknown.status, wrong.status) == (200, 404, 400)
    assert unknown.json["allowed"] == ["main"]


async def test_decisions_are_recorded_without_any_prompt_text(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(recording={"sample_rate": 1.0, "shadow_policies": ["random"]})
    await stage.ask(chat(messages=[{"role": "user", "content": "a very secret word"}]))

    answer = await stage.admin("GET", "/admin/decisions?after=0&limit=10&pool=main")
    later = await stage.admin("GET", "/admin/decisions?after=2")

    record, outcome = answer.json["decisions"]
    assert (record["destination"], record["policy"], record["number"]) == ("a", "round-robin", 1)
    assert outcome["outcome_of"] == record["id"]
    assert b"secret" not in answer.body
    assert later.json["decisions"] == []
    assert set(answer.json["shadow"]["main"]) == {"random"}


async def test_lesson_t01_every_refusal_is_recorded(stage: Stage) -> None:
    await stage.load()
    for _ in range(3):
        await stage.ask(chat())

    records = (await stage.admin("GET", "/admin/decisions")).json["decisions"]

    assert [record["refusal"]["code"] for record in records] == ["no-capacity"] * 3


async def test_metrics_show_requests_tokens_and_documents(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load(version=4)
    await stage.ask(chat(stream=True))

    page = (await request(stage.router.admin_port, "GET", "/metrics")).body.decode()

    assert 'consort_requests_total{outcome="ok",pool="main",status="200"} 1.0' in page
    assert 'consort_tokens_total{kind="completion",pool="main"} 3.0' in page
    assert 'consort_document_version{pool="main"} 4.0' in page
    assert 'consort_ttft_seconds_count{policy="round-robin",pool="main"} 1.0' in page
    assert "consort_spool_dropped_segments_total 0.0" in page


async def test_usage_is_delivered_until_it_is_acknowledged(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()
    await stage.ask(chat())
    await stage.usage(1)

    again = await stage.admin("GET", "/admin/usage-segments?after=0")
    beyond = await stage.admin("POST", "/admin/usage-segments/99/acknowledge")
    done = await stage.admin("POST", "/admin/usage-segments/1/acknowledge")
    twice = await stage.admin("POST", "/admin/usage-segments/1/acknowledge")
    empty = await stage.admin("GET", "/admin/usage-segments?after=0")

    assert [segment["last_sequence"] for segment in again.json["segments"]] == [1]
    assert again.json["complete_until"] >= again.json["segments"][0]["events"][0]["ended_at"]
    assert beyond.status == 409
    assert (done.json["segments_deleted"], twice.json["segments_deleted"]) == (1, 0)
    assert (empty.json["segments"], empty.json["closed_through"]) == ([], 1)


@pytest.mark.parametrize("query", ["after=-1", "after=x", "limit=1.5", "after=" + "9" * 30])
async def test_a_number_that_is_none_is_refused(stage: Stage, query: str) -> None:
    answer = await stage.admin("GET", f"/admin/usage-segments?{query}")

    assert answer.status == 400


async def test_the_model_of_the_samples_is_served(stage: Stage) -> None:
    await stage.engine("a")
    await stage.load()

    answer = await request(
        stage.router.port, "GET", "/v1/models", headers={"authorization": f"Bearer {SECRET}"}
    )

    assert [model["id"] for model in answer.json["data"]] == [MODEL]
