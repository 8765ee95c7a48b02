"""A wrong variable stops the start and is named."""

import os
import subprocess
import sys

import pytest

from controlplane.config.embedded.places import PROJECT


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("DEBUG", "maybe", "DEBUG='maybe': use 'true' or 'false'."),
        ("DATABASE_URL", "sqlite:///x", "DATABASE_URL starts with 'sqlite'"),
        ("BROKER_URL", "memory://", "BROKER_URL starts with 'memory'"),
        ("SECRET_KEY", "short", "SECRET_KEY is missing or shorter than 32 characters."),
        ("API_BODY_LIMIT", "12", "API_BODY_LIMIT='12': use a number from 1024"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, sentence: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import controlplane.config.settings"],
        cwd=PROJECT, env=os.environ | {name: value}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert sentence in done.stderr.strip().splitlines()[-1]
