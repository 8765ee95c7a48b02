"""Real engines are large and slow to start: these tests run by `make test-vllm` only.

What they found out is printed at the end of the run.
"""

import os

import pytest

collect_ignore_glob = [] if os.environ.get("CONSORT_TEST_VLLM") else ["test_*.py"]
_FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> list[str]:
    """Lines for people; add some."""
    return pytestconfig.stash.setdefault(_FIGURES, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print them."""
    lines = config.stash.get(_FIGURES, [])
    if lines:
        terminalreporter.section("real engines")
    for line in lines:
        terminalreporter.write_line(line)
