"""On which accelerators a model fits, for who may see them."""

import pytest
from django.utils import translation

from controlplane.serving import selectors
from controlplane.serving.selectors import Question
from tests.controlplane.serving.factories import (
    make_accelerator_model,
    make_fleet_node,
    make_serving_model,
)
from tests.factories import make_ben, make_olga

pytestmark = pytest.mark.django_db


def test_answers_name_the_accelerators_that_are_in_use() -> None:
    make_fleet_node("amd-mi325x", accelerators=2)
    make_accelerator_model("nvidia-h100-nvl")

    answers = selectors.model_fits(make_olga(), Question(model="llama-3.3-70b"))

    assert answers is not None
    found = {row.accelerator.slug: (row.count, row.fit.verdict) for row in answers}
    assert found == {"amd-mi325x": (2, "fits"), "nvidia-h100-nvl": (0, "too_small")}


def test_a_row_that_somebody_changed_wins_over_the_preset() -> None:
    make_accelerator_model("amd-mi325x")
    row = make_serving_model(weight_bytes=300 * 10**9)

    [answer] = selectors.model_fits(make_olga(), Question(model=row.slug), model=row) or []

    assert answer.fit.verdict == "too_small"


def test_a_row_without_a_preset_is_answered_from_its_own_figures() -> None:
    make_accelerator_model("amd-mi325x")
    row = make_serving_model(slug="our-own-8b")

    [answer] = selectors.model_fits(make_olga(), Question(model="our-own-8b"), model=row) or []

    assert answer.fit.verdict == "fits"
    assert answer.fit.kv_bytes_per_sequence == 8192 * row.kv_bytes_per_token


def test_nobody_knows_a_model_that_is_neither_row_nor_preset() -> None:
    assert selectors.model_fits(make_olga(), Question(model="qwen-9")) is None


def test_a_person_of_a_tenant_sees_no_accelerator() -> None:
    make_fleet_node()

    assert selectors.model_fits(make_ben(), Question(model="qwen3-8b")) == []


@pytest.mark.parametrize(
    ("model", "language", "words"),
    [
        ("qwen3-8b", "en", "sequences of 8192 tokens at a time"),
        ("qwen3-8b", "ko", "맞습니다"),
        ("llama-3.1-405b", "en", "Over 4 it fits"),
        ("llama-3.1-405b", "ko", "너무 큽니다"),
        ("sarvam-105b", "en", "Over 2 it fits"),
        ("granite-4.0-h-tiny", "en", "is not known"),
    ],
)
def test_the_answer_is_a_sentence_in_the_readers_language(
    model: str, language: str, words: str
) -> None:
    make_accelerator_model("amd-mi325x")
    [answer] = selectors.model_fits(make_olga(), Question(model=model)) or []

    with translation.override(language):
        assert words in answer.sentence
