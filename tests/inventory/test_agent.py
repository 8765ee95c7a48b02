"""The node agent: runs a real command, and says why there is no report."""

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from inventory import agent
from inventory.discovery.agent import read_report
from inventory.vendors import vendors

SAMPLE = Path(__file__).parent / "vendors" / "samples" / "furiosa-smi-2026.1-rngd-made.json"
NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH; programs put there are found."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def install(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_the_report_is_what_the_reader_takes(
    tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tools, "furiosa-smi", f"exec /bin/cat {SAMPLE}")

    code = agent.main(["--hostname", "npu-kr-41"])

    report = read_report(json.loads(capsys.readouterr().out))
    assert code == 0
    assert (report.hostname, report.vendor, len(report.accelerators)) == ("npu-kr-41", "furiosa", 2)
    assert report.tool == "furiosa-smi info --format json"


@pytest.mark.parametrize(
    ("script", "code", "sentence"),
    [
        pytest.param("echo no driver >&2; exit 9", 3, "ended with code 9: no driver", id="failed"),
        pytest.param("echo '{}'", 4, "not a list of devices", id="other-output"),
    ],
)
def test_a_tool_that_fails_gives_a_sentence_and_a_code(
    tools: Path, capsys: pytest.CaptureFixture[str], script: str, code: int, sentence: str
) -> None:
    install(tools, "furiosa-smi", script)

    assert agent.main(["--vendor", "furiosa"]) == code
    assert sentence in capsys.readouterr().err


def test_without_a_tool_it_lists_those_it_looked_for(
    tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent.main([]) == 3
    assert "None of the tools is installed: rocm-smi" in capsys.readouterr().err
    assert agent.main(["--vendor", "amd"]) == 3
    assert "rocm-smi is not installed" in capsys.readouterr().err


def test_with_two_tools_it_asks_which(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(tools, "furiosa-smi", "true")
    install(tools, "hl-smi", "true")

    assert agent.main([]) == 3
    assert "Several tools are installed: furiosa-smi, hl-smi" in capsys.readouterr().err


def test_a_tool_that_hangs_is_ended(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "PROBE_TIMEOUT_SECONDS", 0.2)
    install(tools, "hl-smi", "exec /bin/sleep 60")

    with pytest.raises(agent.ProbeError, match=r"did not end within 0\.2 s"):
        agent.run_command(["hl-smi"])


def test_a_file_that_is_no_program_cannot_be_started(tools: Path) -> None:
    (tools / "hl-smi").write_bytes(os.urandom(16))
    (tools / "hl-smi").chmod(0o755)

    with pytest.raises(agent.ProbeError, match="could not be started"):
        agent.run_command(["hl-smi"])


def test_a_probe_takes_any_runner() -> None:
    report = agent.probe(
        vendors()["furiosa"], hostname="npu-1", now=NOW, run=lambda _command: SAMPLE.read_text()
    )

    assert report["seen_at"] == "2026-11-30T09:00:00+00:00"


def test_folders_are_counted_into_the_report(
    tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tools, "furiosa-smi", f"exec /bin/cat {SAMPLE}")
    models = tmp_path / "models"
    models.mkdir()
    (models / "config.json").write_text("{}")
    wanted = [str(models), str(tmp_path / "nothing")]

    code = agent.main(["--hostname", "npu-kr-41", "--folder", wanted[0], "--folder", wanted[1]])

    counted, missing = read_report(json.loads(capsys.readouterr().out)).folders
    assert (code, counted.path, missing.path) == (0, *wanted)
    assert (counted.files, counted.size_bytes, len(counted.sha256)) == (1, 2, 64)
    assert "is not there" in missing.error
    assert missing.size_bytes is None


def test_a_folder_is_an_absolute_path(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        agent.main(["--vendor", "nvidia", "--folder", "models"])

    assert "absolute paths" in capsys.readouterr().err
