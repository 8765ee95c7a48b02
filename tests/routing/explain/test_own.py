"""What the caller of a decision is told: its own answer, whatever decided."""

import msgspec
import pytest

from routing.core.decision import Decision
from routing.explain import english, korean
from routing.explain.explanation import Language
from routing.explain.own import own_answer
from tests.routing.pool.builders import endpoint_dict, make_request, make_router

NAMES = ("gpu-kr-07", "gpu-kr-03", "gpu-kr-09")


def decision(*, policy: str = "consort", draining: tuple[str, ...] = ()) -> Decision:
    endpoints = [
        endpoint_dict(name, state="draining" if name in draining else "ready") for name in NAMES
    ]
    return make_router(*endpoints).decide(make_request(), policy=policy, now=1.0)


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize(
    "made",
    [
        pytest.param(decision(), id="priced"),
        pytest.param(decision(policy="random"), id="policy"),
        pytest.param(decision(draining=NAMES[:2]), id="only"),
        pytest.param(decision(draining=NAMES), id="refused"),
    ],
)
def test_no_other_endpoint_is_named(made: Decision, language: Language) -> None:
    told = own_answer(made, language=language)

    text = msgspec.json.encode(told).decode()
    assert [name for name in NAMES if name in text] == [
        name for name in NAMES if name == made.destination
    ]
    assert told.reason
    assert (told.refusal is None) == (told.destination is not None)


@pytest.mark.parametrize("kind", sorted(english.OWN))
def test_the_words_are_there_in_both_languages(kind: str) -> None:
    assert list(english.OWN) == list(korean.OWN)
    assert "{" in korean.OWN[kind]


def test_a_home_is_told_with_the_tokens_it_holds() -> None:
    made = msgspec.structs.replace(
        decision(),
        margin_seconds=-1.0,
        reason="longer hit",
        predicted=msgspec.structs.replace(decision().predicted, hit_tokens=4096),
    )

    assert own_answer(made).reason == f"{made.destination} holds 4,096 tokens of the prompt."
