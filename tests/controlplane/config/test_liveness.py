"""Signs of life of processes without a port."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.config import liveness
from controlplane.config.embedded.places import PROJECT


def test_a_file_that_was_touched_lately_is_a_sign_of_life(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "alive"

    assert liveness.main([str(file)]) == 1
    liveness.touch(file)
    assert liveness.main([str(file), "--seconds", "60"]) == 0
    seen = file.stat().st_mtime - 61
    os.utime(file, (seen, seen))
    assert liveness.main([str(file), "--seconds", "60"]) == 1

    first, second = capsys.readouterr().err.splitlines()
    assert "is not there" in first
    assert "was last touched 61 s ago; allowed are 60 s" in second


def test_a_folder_that_is_gone_ends_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    liveness.touch(tmp_path / "gone" / "alive")

    assert "No such file" in capsys.readouterr().err


@pytest.mark.processes
def test_a_probe_loads_neither_django_nor_celery(tmp_path: Path) -> None:
    """It runs every few seconds beside a worker that needs the cores."""
    code = (
        "import sys; from controlplane.config import liveness; liveness.main([sys.argv[1]]);"
        "print(sorted({'django', 'celery'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "alive")],
        cwd=PROJECT, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip

    assert done.stdout == "[]\n"
