"""Where helm and kubectl are found, and how they come out of their wheel."""

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from deploy import tools


def wheel(environment: Path, *members: str) -> Path:
    """An environment with the wheel installed; its layer has these members."""
    folder = environment / "lib/python3.11/site-packages/layer/_jsii"
    folder.mkdir(parents=True)
    layer = io.BytesIO()
    with zipfile.ZipFile(layer, "w") as inner:
        for name in members:
            inner.writestr(name, "" if name.endswith("/") else f"I am {name}")
    archive = folder / "layer@2.0.0.jsii.tgz"
    with tarfile.open(archive, "w:gz") as outer:
        member = tarfile.TarInfo("package/lib/layer.zip")
        member.size = len(layer.getvalue())
        outer.addfile(member, io.BytesIO(layer.getvalue()))
    return archive


def test_our_own_comes_before_the_search_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed, own = tmp_path / "installed", tmp_path / "own"
    for folder in (installed, own):
        folder.mkdir()
        (folder / "helm").touch(mode=0o755)

    monkeypatch.setenv("PATH", str(installed))
    assert tools.find("helm", own) == str(own / "helm")
    assert tools.find("helm", tmp_path / "nowhere") == str(installed / "helm")
    assert tools.find("kubectl", own) is None


def test_programs_come_out_of_the_wheel_once(tmp_path: Path) -> None:
    archive = wheel(tmp_path, "helm/", "helm/helm", "kubectl/", "kubectl/kubectl")

    written = tools.unpack(tmp_path)

    assert written == [tmp_path / "bin/helm", tmp_path / "bin/kubectl"]
    assert [path.read_text() for path in written] == ["I am helm/helm", "I am kubectl/kubectl"]
    assert {path.stat().st_mode & 0o777 for path in written} == {0o755}
    assert not archive.exists()
    assert tools.unpack(tmp_path) == []


def test_a_wheel_without_a_program_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel(tmp_path, "helm/helm")

    assert tools.main([str(tmp_path)]) == 2
    assert "kubectl/kubectl" in capsys.readouterr().err
