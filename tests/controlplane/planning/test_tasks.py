"""Tasks do what their services do, and are known to beat by their paths."""

import pytest
from django.utils.module_loading import import_string

from controlplane.config.schedule import SCHEDULE
from controlplane.planning import tasks
from controlplane.planning.models import Advice
from tests.controlplane.planning.rows import make_run

pytestmark = pytest.mark.django_db


def test_the_run_of_an_operation_is_worked_on() -> None:
    run = make_run()

    tasks.run_scenario(str(run.operation_id))

    run.refresh_from_db()
    assert run.state == "succeeded"


def test_standing_advice_is_looked_for_every_quarter_of_an_hour() -> None:
    entry = SCHEDULE["advise-standing"]

    assert entry["schedule"] == 900
    import_string(entry["task"])()
    import_string(SCHEDULE["forget-standing"]["task"])()
    assert not Advice.objects.exists()
