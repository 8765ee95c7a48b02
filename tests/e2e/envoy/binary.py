"""Envoy, for tests that need it."""

import pytest

from deploy.envoy import program


def envoy_binary() -> str:
    """The program; a test that needs it is skipped where it is not installed."""
    found = program.find()
    if found is None:
        pytest.skip("Envoy is not installed; 'make envoy' installs it on Linux for x86_64.")
    return found
