"""A test needs sizes or a text; to be sent it needs a text and a key."""

from typing import Any

import pytest

from controlplane.decisions.forms import ReplayForm, RouteForm
from tests.controlplane.serving.factories import make_pool
from tests.factories import make_olga

pytestmark = pytest.mark.django_db


def form(**posted: Any) -> RouteForm:
    make_pool(slug="main")
    return RouteForm({"pool": "main"} | posted, viewer=make_olga())


@pytest.mark.parametrize(
    ("posted", "wrong"),
    [
        ({"prompt_tokens": "3000"}, []),
        ({"prompt": "hello"}, []),
        ({}, ["prompt_tokens"]),
        ({"prompt_tokens": "0"}, ["prompt_tokens"]),
        ({"act": "send", "prompt": "hello", "key": "k"}, []),
        ({"act": "send", "prompt_tokens": "5"}, ["key", "prompt"]),
    ],
)
def test_what_a_request_needs(posted: dict[str, str], wrong: list[str]) -> None:
    assert sorted(form(**posted).errors) == wrong


def test_a_question_forces_one_endpoint_and_names_a_tenant() -> None:
    valid = form(prompt_tokens="3000", force="b")
    assert valid.is_valid()

    question = valid.question()

    assert (question.pool.slug, question.tenant, question.force) == ("main", "test", ["b"])


def test_a_replay_offers_the_listed_endpoints() -> None:
    assert ReplayForm({"remove": "a"}, endpoints=["a"]).is_valid()
    assert not ReplayForm({"remove": "z"}, endpoints=["a"]).is_valid()
