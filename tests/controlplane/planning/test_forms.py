"""Forms: what they start with, and the questions they make."""

from decimal import Decimal

import pytest
from django.utils import timezone

from controlplane.planning.forms import SavingsForm, ScenarioForm, starting_values
from controlplane.planning.selectors import Load
from routing.planner.problem import Traffic
from tests.controlplane.serving.factories import make_pool
from tests.factories import make_ben, make_olga


@pytest.mark.django_db
def test_a_measured_load_is_what_the_form_starts_with() -> None:
    pool = make_pool(slo_ttft_p95_seconds=1.5)
    now = timezone.now()
    traffic = Traffic(rate_qps=1.23456, prompt_tokens=900, output_tokens=80)
    load = Load(traffic=traffic, requests=99, since=now, until=now)

    values = starting_values(pool, load)

    assert values["rate_qps"] == 1.235
    assert values["prompt_tokens"] == 900
    assert values["ttft_seconds"] == 1.5
    assert values["tpot_seconds"] == 0.08
    assert starting_values(None, None)["rate_qps"] == 5.0


@pytest.mark.django_db
def test_a_valid_form_is_a_question_about_a_pool_that_the_person_sees() -> None:
    pool = make_pool()
    values = {**starting_values(pool, None), "pool": pool.pk, "name": "peak"}

    form = ScenarioForm(values, viewer=make_olga())
    foreign = ScenarioForm(values, viewer=make_ben())

    assert form.is_valid(), form.errors
    assert form.question().pool_id == pool.pk
    assert form.question().traffic["rate_qps"] == 5.0
    assert not foreign.is_valid()


def test_the_calculator_needs_positive_numbers() -> None:
    values = {
        "price": "3", "concurrency": "1000", "ttft_limit_seconds": "1", "pool_accelerators": "12",
        "in_flight_before": "99.6", "in_flight_after": "0", "hours": "8760",
    }  # fmt: skip

    refused = SavingsForm(values)
    good = SavingsForm(values | {"in_flight_after": "463"})

    assert "in_flight_after" in refused.errors
    assert good.is_valid()
    assert good.question().in_flight_after == Decimal(463)
    assert (good.question().edge_before, good.question().edge_after) == ("measured", "measured")


@pytest.mark.parametrize("before", ["measured", "less-than", "at-least"])
@pytest.mark.parametrize("after", ["measured", "less-than", "at-least"])
def test_the_calculator_may_be_told_what_each_number_is(before: str, after: str) -> None:
    form = SavingsForm(
        {
            "price": "3", "concurrency": "1000", "ttft_limit_seconds": "1",
            "pool_accelerators": "12", "in_flight_before": "99.6", "in_flight_after": "463",
            "hours": "8760", "edge_before": before, "edge_after": after,
        }
    )  # fmt: skip

    assert form.is_valid()
    assert (form.question().edge_before, form.question().edge_after) == (before, after)


@pytest.mark.django_db
def test_targets_that_a_pool_does_not_state_are_shown_as_defaults() -> None:
    pool = make_pool(slo_ttft_p95_seconds=1.5, slo_tpot_p95_seconds=None)

    form = ScenarioForm(initial=starting_values(pool, None), viewer=make_olga())

    assert not form.fields["ttft_seconds"].help_text
    assert "planner's default" in str(form.fields["tpot_seconds"].help_text)
