"""Errors of predictions per class and endpoint."""

import math

import pytest

from routing.core.table import Instance
from routing.producers.predictions import Predictions
from tests.routing.pool.builders import endpoint_dict, make_document


def instances(*classes: str) -> list[Instance]:
    specs = make_document(
        *(endpoint_dict(f"e{row}", speed_class=name) for row, name in enumerate(classes))
    ).endpoints
    return [Instance(spec, row, row) for row, spec in enumerate(specs)]


@pytest.mark.lesson("T05")
def test_each_prediction_is_kept_with_its_outcome_by_class_and_by_endpoint() -> None:
    predictions = Predictions()
    first, second, other = instances("fast", "fast", "slow")

    predictions.observe(first, "ttft", predicted=1.1, seen=1.0)
    predictions.observe(second, "ttft", predicted=0.7, seen=1.0)
    predictions.observe(other, "tpot", predicted=0.02, seen=0.01)

    classes = predictions.describe_classes()
    assert classes["fast"]["ttft"] == {"mean_error": pytest.approx(0.2), "outcomes": 2}
    assert classes["fast"]["tpot"] == {"mean_error": None, "outcomes": 0}
    assert classes["slow"]["tpot"] == {"mean_error": pytest.approx(1.0), "outcomes": 1}
    assert predictions.describe(first)["ttft"]["mean_error"] == pytest.approx(0.1)


@pytest.mark.lesson("T05")
def test_a_drift_shows_within_some_hundred_outcomes() -> None:
    predictions = Predictions()
    (one,) = instances("fast")

    for error in [0.05] * 500 + [0.5] * 150:
        predictions.observe(one, "ttft", predicted=1.0 + error, seen=1.0)

    assert predictions.describe(one)["ttft"]["mean_error"] > 0.4


def test_nothing_is_learned_without_a_prediction_and_a_standstill_is_cut() -> None:
    predictions = Predictions()
    (one,) = instances("fast")

    predictions.observe(one, "ttft", predicted=math.nan, seen=1.0)
    predictions.observe(one, "ttft", predicted=1.0, seen=0.0)
    predictions.observe(one, "ttft", predicted=5000.0, seen=0.01)

    assert predictions.describe(one)["ttft"] == {"mean_error": 10.0, "outcomes": 1}


def test_what_is_gone_is_forgotten() -> None:
    predictions = Predictions()
    one, two = instances("fast", "slow")
    for instance in (one, two):
        predictions.observe(instance, "ttft", predicted=1.0, seen=2.0)

    predictions.keep_only({two}, {"slow"})

    assert set(predictions.of_instance) == {two}
    assert set(predictions.describe_classes()) == {"slow"}
    predictions.forget()
    assert predictions.describe_classes() == {}
