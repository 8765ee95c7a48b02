"""Deployments in the API: conditions with what to do, and output that may be out of reach."""

from typing import Any

import pytest

from controlplane.serving.models import Workload
from tests.controlplane.serving.rows import make_workload
from tests.factories import make_api_client, make_olga

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clean_cache")]


def test_a_condition_that_does_not_hold_says_what_to_do() -> None:
    row = make_workload()
    row.conditions = [
        {"type": "Started", "status": "False", "reason": "ImagePullBackOff", "message": "no",
         "at": "2026-12-01T09:00:00+00:00"}
    ]  # fmt: skip
    row.save()

    answer: Any = make_api_client(make_olga()).get(f"/api/v1/deployments/{row.pk}")

    [condition] = answer.json()["status"]["conditions"]
    assert "Correct the image" in condition["hint"]


def test_output_of_a_target_that_is_away_is_a_problem_with_a_sentence(settings: Any) -> None:
    settings.ENGINE_HOST_URL = "http://127.0.0.1:1"
    row: Workload = make_workload()

    answer: Any = make_api_client(make_olga()).get(f"/api/v1/deployments/{row.pk}/logs")

    problem = answer.json()
    assert answer.status_code == 503
    assert problem["code"] == "engine-output-unavailable"
    assert "did not answer" in problem["detail"]
