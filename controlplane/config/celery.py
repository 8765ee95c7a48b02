"""The Celery application: a broker wakes workers up, rows say what there is to do."""

import os
from pathlib import Path

from celery import Celery
from django.conf import settings

from controlplane.config import liveness
from controlplane.config.schedule import SCHEDULE

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.config.settings")

app = Celery("consort")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.beat_schedule = SCHEDULE
app.autodiscover_tasks()
if settings.LIVENESS_FILE:
    app.steps["worker"].add(liveness.worker_step(Path(settings.LIVENESS_FILE)))
