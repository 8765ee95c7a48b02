"""Where Envoy is found."""

from pathlib import Path

import pytest

from deploy.envoy import program


def test_the_search_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed, own = tmp_path / "envoy", tmp_path / "own"
    for path in (installed, own):
        path.touch(mode=0o755)

    monkeypatch.setenv("PATH", str(tmp_path))
    assert program.find(own) == str(installed)
    monkeypatch.setenv("PATH", "")
    assert program.find(own) == str(own)
    assert program.find(tmp_path / "nowhere") is None
