"""What the load generator sends follows from its seed."""

import itertools
import json
from typing import Any

import pytest

from routing.testbed.load_plan import (
    LoadSpec,
    LoadSpecError,
    arrival_times,
    prompt_at,
    request_body,
)
from tests.routing.testbed.helpers import MODEL


def make_spec(**overrides: Any) -> LoadSpec:
    """A small load."""
    values: dict[str, Any] = {
        "urls": ("http://127.0.0.1:1",),
        "model": MODEL,
        "rate": 30.0,
        "requests": 50,
        "groups": 3,
        "prompts_per_group": 2,
        "system_tokens": 40,
        "question_tokens": 10,
    }
    return LoadSpec(**(values | overrides))


@pytest.mark.parametrize("arrivals", ["poisson", "constant"])
def test_the_same_seed_sends_the_same_bytes_at_the_same_times(arrivals: Any) -> None:
    first, second = (make_spec(arrivals=arrivals) for _ in range(2))

    assert list(arrival_times(first)) == list(arrival_times(second))
    assert [request_body(first, n) for n in range(50)] == [
        request_body(second, n) for n in range(50)
    ]


def test_another_seed_sends_other_bytes_at_other_times() -> None:
    first, second = make_spec(seed=1), make_spec(seed=2)

    assert list(arrival_times(first)) != list(arrival_times(second))
    assert request_body(first, 0) != request_body(second, 0)


def test_the_rate_is_the_offered_one() -> None:
    times = list(arrival_times(make_spec(requests=20_000)))

    assert times == sorted(times)
    assert times[-1] / 20_000 == pytest.approx(1 / 30, rel=0.05)


def test_a_duration_ends_the_sending() -> None:
    times = list(arrival_times(make_spec(requests=None, duration_seconds=10.0)))

    assert all(time < 10.0 for time in times)
    assert len(times) == pytest.approx(300, rel=0.3)


def test_each_round_asks_every_prompt_once_in_its_own_order() -> None:
    spec = make_spec(groups=30, prompts_per_group=4)

    rounds = [[prompt_at(spec, n + 120 * r) for n in range(120)] for r in range(2)]

    assert [len(set(prompts)) for prompts in rounds] == [120, 120]
    assert rounds[0] != rounds[1]


def test_prompts_of_a_group_share_their_system_text_and_nothing_else() -> None:
    spec = make_spec()
    bodies = {prompt_at(spec, n): json.loads(request_body(spec, n)) for n in range(6)}

    systems = {prompt: body["messages"][0]["content"] for prompt, body in bodies.items()}
    questions = {body["messages"][1]["content"] for body in bodies.values()}

    assert len(questions) == 6
    for one, other in itertools.combinations(systems, 2):
        assert (systems[one] == systems[other]) == (one[0] == other[0])
    assert {len(text) for text in systems.values()} == {160}


def test_a_completion_has_one_prompt_of_the_asked_length() -> None:
    body = json.loads(request_body(make_spec(api="completions"), 0))

    assert len(body["prompt"]) == 4 * 50
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"urls": ()}, "At least one URL"),
        ({"urls": ("https://a:1",)}, "is not of the form http://host:port"),
        ({"urls": ("http://a:1/v1",)}, "is not of the form http://host:port"),
        ({"rate": 0.0}, "must be above 0"),
        ({"requests": None}, "number of requests or a duration"),
        ({"groups": 0}, "groups is 0"),
    ],
)
def test_a_load_that_cannot_be_sent_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(LoadSpecError, match=message):
        make_spec(**wrong).check()
