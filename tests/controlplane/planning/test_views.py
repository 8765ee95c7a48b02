"""What people do in planning's pages."""

from typing import Any

import pytest
from django.test import Client

from controlplane.planning.models import Scenario, ScenarioRun
from controlplane.planning.services import runs
from controlplane.serving.models import ChangePlan
from tests.controlplane.planning.recorded import make_recorded_run
from tests.controlplane.planning.rows import (
    TRAFFIC,
    make_advice,
    make_run,
    make_scenario,
    make_serving_fleet,
)
from tests.controlplane.serving.factories import accelerators_of
from tests.factories import make_ben, make_olga

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga() -> Any:
    return make_olga()


@pytest.fixture
def browser(olga: Any) -> Client:
    client = Client()
    client.force_login(olga)
    return client


def form_values(pool: Any, **overrides: Any) -> dict[str, Any]:
    target = {"ttft_seconds": 3, "tpot_seconds": 0.08}
    sharing = {"shared_tokens": 0, "groups": 0}
    return {"name": "peak", "pool": pool.pk, **TRAFFIC, **sharing, **target} | overrides


def test_a_new_scenario_is_stored_and_run_at_once(browser: Client) -> None:
    pool, _node = make_serving_fleet(both=2)

    answer = browser.post("/planning/scenarios/add", form_values(pool))

    run = ScenarioRun.objects.get()
    assert answer["Location"] == f"/planning/runs/{run.pk}"
    assert run.scenario.name == "peak"


def test_what_is_wrong_stands_beside_its_field_and_nothing_is_stored(browser: Client) -> None:
    pool, _node = make_serving_fleet(both=2)

    answer = browser.post("/planning/scenarios/add", form_values(pool, rate_qps=0))
    shared = browser.post("/planning/scenarios/add", form_values(pool, shared_tokens=9999))

    assert answer.status_code == shared.status_code == 422
    assert b"id_rate_qps_error" in answer.content
    assert b"share at most the whole prompt" in shared.content
    assert not Scenario.objects.exists()


def test_a_run_in_progress_can_be_cancelled_and_says_so(browser: Client, olga: Any) -> None:
    run = make_run(actor=olga)
    before = browser.get(f"/planning/runs/{run.pk}").content.decode()

    browser.post(f"/planning/runs/{run.pk}/cancel")

    after = browser.get(f"/planning/runs/{run.pk}").content.decode()
    assert "<progress" in before
    assert "Cancel the run" in before
    assert 'hx-trigger="every 2s"' in before
    assert "nothing of it was kept" in after
    assert "hx-trigger" not in after


def test_an_unchanged_run_is_not_sent_again_and_an_ended_one_stops_the_asking(
    browser: Client, olga: Any
) -> None:
    run = make_run(actor=olga)
    url = f"/planning/runs/{run.pk}"
    text = browser.get(url).content.decode()
    tag = text.split('"If-None-Match": "')[1].split('"')[0]
    headers = {"HX-Request": "true"}

    assert browser.get(url, headers=headers | {"If-None-Match": tag}).status_code == 304
    browser.post(f"{url}/cancel")
    assert browser.get(url, headers=headers | {"If-None-Match": tag}).status_code == 286


def test_advice_becomes_a_draft_that_opens(browser: Client) -> None:
    pool, node = make_serving_fleet(both=2)
    members = {"amd-mi325x": [str(one.pk) for one in accelerators_of(node)]}
    advice = make_advice(pool, members, wanted={"amd-mi325x": {"prefill": 1, "both": 1}})

    answer = browser.post(f"/planning/advice/{advice.pk}/plan")

    plan = ChangePlan.objects.get(state="draft", pool=pool)
    assert answer["Location"] == f"/serving/changes/{plan.pk}"


def test_a_refusal_comes_back_to_the_advice(browser: Client) -> None:
    advice = make_advice(None, {})

    answer = browser.post(f"/planning/advice/{advice.pk}/plan", follow=True)

    assert b"is not a pool of this installation" in answer.content


def test_two_runs_stand_side_by_side(browser: Client, olga: Any) -> None:
    first = make_recorded_run(olga)
    second = make_recorded_run(olga, scenario=first.scenario, seed=2)

    page = browser.get(f"/planning/compare?first={first.pk}&second={second.pk}")

    assert page.status_code == 200
    assert "Goodput, requests/s" in page.content.decode()
    assert browser.get("/planning/compare?first=x").status_code == 404


def test_the_calculator_keeps_its_question_in_the_address(browser: Client) -> None:
    asked = (
        "/planning/savings?price=3&concurrency=1000&ttft_limit_seconds=0.5&pool_accelerators=12"
        "&in_flight_before=670.4&in_flight_after=102.65&hours=8760"
    )

    text = browser.get(asked).content.decode()

    assert "2,601,720" in text
    assert "the new way costs more" in text
    assert browser.get("/planning/savings?price=-1").status_code == 422


def test_retiring_takes_a_scenario_from_the_list(browser: Client, olga: Any) -> None:
    row = make_scenario(olga, name="old one")

    answer = browser.post(f"/planning/scenarios/{row.pk}/retire", follow=True)

    assert b"Retired: old one." in answer.content
    assert b'id="scenario-' not in answer.content


def test_an_empty_list_says_where_to_start(browser: Client) -> None:
    assert b"Start from the fleet as it is." in browser.get("/planning").content


def test_the_new_form_starts_with_the_pool_s_targets(browser: Client) -> None:
    pool, _node = make_serving_fleet(both=2)

    text = browser.get(f"/planning/scenarios/add?pool={pool.slug}").content.decode()

    assert "Too few requests were answered" in text
    assert f'value="{pool.pk}" selected' in text


@pytest.mark.parametrize(
    "path", ["scenarios/{s}/run", "scenarios/{s}/retire", "runs/{r}/cancel", "advice/{a}/plan"]
)
def test_a_tenant_does_nothing_here(path: str, olga: Any) -> None:
    run = make_recorded_run(olga)
    ben = Client()
    ben.force_login(make_ben())
    address = path.format(s=run.scenario_id, r=run.pk, a=run.advice.get().pk)

    assert ben.post(f"/planning/{address}").status_code in {403, 404}
    assert ScenarioRun.objects.count() == 1


def test_a_scenario_whose_run_is_refused_is_not_stored_so_that_its_name_is_free(
    browser: Client, olga: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, _node = make_serving_fleet(both=2)
    monkeypatch.setattr(runs, "MOST_OPEN_RUNS", 0)

    refused = browser.post("/planning/scenarios/add", form_values(pool))

    assert refused.status_code == 422
    assert "at most 0 may be open" in refused.content.decode()
    assert not Scenario.objects.exists()


def test_the_calculator_says_when_a_saving_is_a_bound(browser: Client) -> None:
    asked = {
        "price": "3", "concurrency": "1000", "ttft_limit_seconds": "1", "pool_accelerators": "12",
        "in_flight_before": "100", "in_flight_after": "463", "hours": "8760",
    }  # fmt: skip

    plain, least, most = [
        browser.get("/planning/savings", asked | edge).content.decode()
        for edge in ({}, {"edge_before": "less-than"}, {"edge_before": "at-least"})
    ]

    assert "The saving is at least this" in least
    assert "The saving is at most this" in most
    assert "The saving is" not in plain


def test_the_calculator_answers_the_largest_figures_it_takes(browser: Client) -> None:
    most = "999999999999"
    asked = {
        "price": most, "concurrency": most, "ttft_limit_seconds": "1", "pool_accelerators": most,
        "in_flight_before": "0.00000001", "in_flight_after": "1", "hours": most,
    }  # fmt: skip

    assert browser.get("/planning/savings", asked).status_code == 200


def test_a_pool_that_no_slug_can_name_is_refused(browser: Client) -> None:
    assert browser.get("/planning/scenarios/add", {"pool": "a\0b"}).status_code == 400
