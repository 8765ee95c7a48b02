"""Queues a task once the surrounding transaction has committed."""

import logging

from celery import current_app
from django.db import transaction
from django.utils.module_loading import import_string
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)


def whole_path(path: str) -> str:
    """Path of a task from its root: "serving.tasks.x" stands for "controlplane.serving.tasks.x"."""
    is_whole = path.count(".") > 2 or path.startswith("inventory.")
    return path if is_whole else f"controlplane.{path}"


def after_commit(path: str, *arguments: str | int | float | bool | None) -> None:
    """Send the task named by its dotted path after the commit.

    The path is resolved at once, so that a typo fails the caller. A broker that is away costs a
    delay, not an error: rows say what there is to do, and a periodic sweep sends it again.
    """
    task = import_string(whole_path(path))

    def queue() -> None:
        try:
            current_app.send_task(task.name, args=arguments)
        except (OperationalError, OSError) as error:
            logger.warning("Task %s was not sent, the sweep will: %s", task.name, error)

    transaction.on_commit(queue, robust=True)
