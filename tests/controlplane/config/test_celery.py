"""Real workers on a real broker: what a killed one leaves behind is finished by the next."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from celery import current_app
from django.db import connection
from django.utils import timezone

from controlplane.config.embedded.places import PROJECT
from controlplane.config.schedule import SCHEDULE
from controlplane.operations import broker, services
from controlplane.operations.models import Operation

DEADLINE_SECONDS = 60
TASK = "tests.controlplane.config.slow_work.wait_for_file"


@contextmanager
def _worker(broker_url: str, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker of the test database, gone at the end with its pool."""
    settings = connection.settings_dict
    host = settings["OPTIONS"].get("host") or settings["HOST"]
    environment = os.environ | {
        "BROKER_URL": broker_url,
        "DATABASE_URL": f"postgresql://{settings['USER']}@/{settings['NAME']}?host={host}",
        "DJANGO_SETTINGS_MODULE": "controlplane.config.settings",
        "PYTHONPATH": str(PROJECT),
    }
    command = [
        sys.executable, "-m", "celery", "-A", "controlplane.config.celery", "worker",
        "--pool=prefork", "--concurrency=1", "--loglevel=INFO", "--without-gossip",
        "--without-mingle", "--include=tests.controlplane.config.slow_work",
    ]  # fmt: skip
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=PROJECT, env=environment, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(DEADLINE_SECONDS)


def _eventually(condition: Callable[[], bool], log: Path) -> None:
    until = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < until, log.read_text()[-4000:]
        time.sleep(0.05)


def _state(operation: Operation) -> str:
    operation.refresh_from_db()
    return operation.state


def _send_lost_ones_again() -> None:
    with time_machine.travel(timezone.now() + timedelta(seconds=120)):
        services.sweep()


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("victim", ["worker", "pool process"])
def test_what_a_killed_worker_had_begun_is_finished_by_another(
    victim: str, real_broker: str, tmp_path: Path
) -> None:
    # The kind names the file that the task waits for, so its path must be short.
    log, file = tmp_path / "worker.log", Path(tempfile.mkdtemp(prefix="go-")) / "go"
    operation = services.start(kind=str(file), subject=None, task=TASK, actor=None)
    with _worker(real_broker, log) as first:
        _eventually(lambda: _state(operation) == "running" and operation.progress_done > 0, log)
        if victim == "worker":
            os.killpg(first.pid, signal.SIGKILL)
        else:
            os.kill(operation.progress_done, signal.SIGKILL)
        killed = operation.attempt
        file.touch()

        with _worker(real_broker, log):
            _eventually(lambda: _state(operation) == "succeeded" or _swept(operation), log)
            _eventually(lambda: _state(operation) == "succeeded", log)

    assert operation.attempt == killed + 1


def _swept(operation: Operation) -> bool:
    """Once the claim of the dead one has lapsed, send the message again."""
    if operation.claimed_until is None or timezone.now() <= operation.claimed_until:
        return False
    _send_lost_ones_again()
    return True


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_message_that_never_arrived_is_sent_again(real_broker: str) -> None:
    services.start(kind="test", subject=None, task=TASK, actor=None)
    current_app.control.purge()

    _send_lost_ones_again()

    with current_app.connection_for_read() as link:
        message = link.default_channel.basic_get(broker.QUEUE, no_ack=True)
    assert message is not None


@pytest.mark.parametrize("name", sorted(SCHEDULE))
def test_every_scheduled_task_exists(name: str) -> None:
    current_app.loader.import_default_modules()

    assert SCHEDULE[name]["task"] in current_app.tasks
    assert SCHEDULE[name]["options"]["expires"] >= SCHEDULE[name]["schedule"]


def test_results_are_not_kept_and_messages_are_acknowledged_late() -> None:
    assert current_app.conf.task_ignore_result
    assert current_app.conf.task_acks_late
    assert current_app.conf.task_reject_on_worker_lost
    visible = current_app.conf.broker_transport_options["visibility_timeout"]
    assert visible > current_app.conf.task_time_limit
