"""Beat's sign of life."""

from pathlib import Path

from celery import Celery
from django.test import override_settings

from controlplane.config.scheduler import Live


def test_each_tick_touches_the_file(tmp_path: Path) -> None:
    app = Celery("test", set_as_current=False)
    scheduler = Live(app, schedule_filename=str(tmp_path / "schedule"), lazy=True)
    scheduler.setup_schedule()
    file = tmp_path / "alive"

    with override_settings(LIVENESS_FILE=""):
        scheduler.tick()
    assert not file.exists()
    with override_settings(LIVENESS_FILE=str(file)):
        scheduler.tick()
    assert file.exists()
    scheduler.close()
