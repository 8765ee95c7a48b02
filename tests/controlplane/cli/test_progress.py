"""Progress goes to stderr: a line per tenth, or one line that is redrawn on a terminal."""

import sys

import pytest

from controlplane.cli.progress import Progress


def test_elsewhere_there_is_a_line_per_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        for part in range(101):
            progress(part / 100, "consort, seed 1")

    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 11
    assert told.err.startswith("0% consort, seed 1\n")


def test_on_a_terminal_the_line_is_gone_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    with Progress() as progress:
        progress(0.5, "random")
        # Too early to be drawn again.
        progress(0.51, "random")

    told = capsys.readouterr().err
    assert "###" in told
    assert " 50%" in told
    assert "51%" not in told
    assert told.endswith("\r\x1b[K")
