"""The command line as a process: small, and without Django."""

import subprocess
import sys

import pytest

from controlplane.cli.main import main


def test_help_loads_neither_django_nor_the_http_library() -> None:
    script = (
        "import sys\n"
        "from controlplane.cli.main import parser\n"
        "parser().format_help()\n"
        "print([name for name in ('django', 'httpx', 'numpy', 'yaml') if name in sys.modules])"
    )

    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert told.stdout.strip() == "[]"


def test_usage_errors_exit_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["route", "dance"])

    assert caught.value.code == 2
    assert "route" in capsys.readouterr().err
