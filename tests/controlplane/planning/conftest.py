"""Runs of tests are short."""

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def short_runs(settings: Any) -> None:
    """A few hundred requests a run: about a second."""
    settings.PLANNING_REQUESTS = 300
