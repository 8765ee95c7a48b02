"""Tables, shipped figures and declared routers, by one caller at a time."""

import json
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from controlplane.config.management.commands import upgrade
from controlplane.serving.models import Router
from inventory.models import AcceleratorModel
from tests.controlplane.serving.processes import secret_file

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("upgrade", *arguments, stdout=out, verbosity=0)
    return out.getvalue()


def declared(folder: Path, *names: str) -> Path:
    file = folder / "routers.json"
    rows = [
        {
            "name": name,
            "admin_url": f"https://{name}.example:8081",
            "public_url": f"http://{name}.example:8080",
            "token_reference": f"file:{secret_file(folder / name)}",
        }
        for name in names
    ]
    file.write_text(json.dumps(rows))
    return file


def test_running_it_again_changes_nothing(tmp_path: Path) -> None:
    file = declared(tmp_path, "router-0", "router-1")

    first, second = run("--routers", str(file)), run("--routers", str(file))

    assert "registered or changed: router-0, router-1." in first
    assert "registered or changed: none." in second
    assert AcceleratorModel.objects.exists()
    assert Router.objects.get(name="router-0").admin_url == "https://router-0.example:8081"


def test_a_file_that_is_wrong_is_refused_with_its_entry(tmp_path: Path) -> None:
    file = tmp_path / "routers.json"
    file.write_text('[{"name": "router-0"}]')

    with pytest.raises(CommandError, match="Entry 0 of the declared routers must have the texts"):
        run("--routers", str(file))


def test_a_second_caller_waits_and_says_for_what() -> None:
    values = connection.get_connection_params()
    values = {
        key: values[key] for key in ("dbname", "user", "password", "host", "port") if key in values
    }
    with psycopg.connect(**values) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [upgrade.LOCK])

        with pytest.raises(CommandError, match=r"Another 'manage\.py upgrade' still runs"):
            run("--wait-seconds", "0")

    run("--wait-seconds", "10")
