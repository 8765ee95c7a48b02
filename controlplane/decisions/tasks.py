"""Periodic reading and forgetting; each task may run twice, late or not at all."""

from celery import shared_task

from controlplane.decisions import services


@shared_task
def pull_decisions() -> None:
    """Read the rings of the routers."""
    services.pull_decisions()


@shared_task
def delete_old_decisions() -> None:
    """Forget what is too old or too much."""
    services.delete_old_decisions()
