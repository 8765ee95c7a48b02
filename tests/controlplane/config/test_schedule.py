"""What beat sends."""

import pytest
from django.utils.module_loading import import_string

from controlplane.config.schedule import SCHEDULE, every


@pytest.mark.parametrize("name", sorted(SCHEDULE))
def test_every_entry_names_a_task_and_lets_old_messages_go(name: str) -> None:
    entry = SCHEDULE[name]

    assert import_string(entry["task"]).name == entry["task"]
    assert entry["options"]["expires"] > 0


def test_a_message_waits_no_longer_than_until_the_next() -> None:
    entry = every(15, "a.b")

    assert entry == {"task": "a.b", "schedule": 15, "options": {"expires": 15}}
    assert every(1, "a.b")["options"]["expires"] == 5
