"""Policies over the wire: refused when they cannot be run, and at work when they can."""

from typing import Any

import pytest

from tests.routing.servers.scripted import Stage, chat, document


def weighted(**plugin: Any) -> dict[str, Any]:
    return {"name": "weighted", "profiles": [{"name": "default", "plugins": [plugin]}]}


@pytest.mark.parametrize("name", ["weighted", "consort"])
async def test_profiles_that_cannot_be_run_are_refused_and_the_last_good_ones_stay(
    stage: Stage, name: str
) -> None:
    await stage.engine("a")
    await stage.load(policy={"name": "llm-d-weighted"})
    entry = weighted(type="queue-scorer", parameters={"depth": 3}) | {"name": name}

    answer = await stage.push(document(list(stage.engines.values()), version=2, policy=entry))

    assert answer.status == 422
    assert answer.json["pointer"] == "/policy/profiles/0/plugins/0/parameters/depth"
    assert (await stage.ask(chat())).status == 200


async def test_a_profile_whose_filters_leave_nobody_answers_503(stage: Stage) -> None:
    await stage.engine("a")
    parameters = {"label": "zone", "validValues": ["nowhere"]}
    await stage.load(policy=weighted(type="by-label", parameters=parameters))

    answer = await stage.ask(chat())

    assert answer.status == 503
    assert answer.json["error"]["code"] == "no-capacity"


@pytest.mark.parametrize(
    "name", ["llm-d-weighted", "llm-d-token-aware", "sglang-cache-aware", "dynamo", "session-hash"]
)
async def test_a_peers_policy_serves_requests(stage: Stage, name: str) -> None:
    for engine in "ab":
        await stage.engine(engine)
    await stage.load(policy={"name": name})

    answers = [await stage.ask(chat(user="ana")) for _ in range(4)]

    assert [answer.status for answer in answers] == [200] * 4
