"""Advice as a panel shows it: bars of all accelerators, error beside goodput, reasons in words."""

import pytest
from django.utils import translation

from controlplane.console import planningpage
from controlplane.planning.models import Advice
from tests.controlplane.planning.recorded import RECORDED, make_recorded_run
from tests.controlplane.planning.rows import make_advice
from tests.controlplane.serving.factories import make_pool
from tests.factories import make_olga

pytestmark = pytest.mark.django_db


def test_the_advice_comes_first_and_goodput_has_the_model_s_error() -> None:
    run = make_recorded_run(make_olga(), pool=make_pool())

    view = planningpage.view_of(Advice.objects.get(run=run))

    first, *others = view.options
    assert first.is_advice
    assert not any(option.is_advice for option in others)
    assert first.goodput is not None
    assert first.goodput_low == pytest.approx(0.85 * first.goodput)
    assert first.goodput_high == pytest.approx(1.15 * first.goodput)
    assert "pattern" not in first.bars[0].told
    assert view.can_plan
    assert view.refused == [("furiosa-rngd", "vLLM has no backend for furiosa.")]


def test_advice_without_a_pool_cannot_be_planned() -> None:
    run = make_recorded_run(make_olga())

    assert not planningpage.view_of(Advice.objects.get(run=run)).can_plan


def test_reasons_follow_the_language() -> None:
    run = make_recorded_run(make_olga())
    with translation.override("ko"):
        view = planningpage.view_of(Advice.objects.get(run=run))

    assert "굿풋" in " ".join(view.reasons)


def test_equal_runs_differ_in_nothing() -> None:
    olga = make_olga()
    first = make_recorded_run(olga)
    second = make_recorded_run(olga, scenario=first.scenario, seed=2)

    ((pool, figures, *_verdicts),) = planningpage.compared(first, second)

    assert pool == RECORDED["result"]["pools"][0]["pool"]
    assert {figure.change for figure in figures if figure.first} == {0.0}
    assert figures[1].first == RECORDED["result"]["pools"][0]["chosen"]["outcome"]["goodput_rps"]


def test_targets_that_the_pool_does_not_state_are_the_planner_s_defaults() -> None:
    stated = make_pool(slo_ttft_p95_seconds=3.0, slo_tpot_p95_seconds=0.08)
    half = make_pool(slo_ttft_p95_seconds=3.0, slo_tpot_p95_seconds=None)

    told = [planningpage.view_of(make_advice(pool, {})).default_targets for pool in (stated, half)]

    assert told == ["", "TPOT"]
