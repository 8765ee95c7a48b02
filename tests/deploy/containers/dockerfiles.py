"""Container files read as their builders do, and their trees laid out on this machine."""

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "containers"
NAMES = ("control-plane", "router")
HOME = "/opt/consort"


@dataclass(frozen=True)
class Stage:
    """From one FROM to the next."""

    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)
    """Instructions and their arguments, lines joined."""

    def of(self, instruction: str) -> list[str]:
        """Arguments of one instruction, in order."""
        return [argument for name, argument in self.steps if name == instruction]


def stages(name: str) -> list[Stage]:
    """Stages of a container file, the image itself last."""
    text = (FOLDER / f"{name}.Dockerfile").read_text().replace("\\\n", " ")
    found: list[Stage] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        instruction, _, argument = line.partition(" ")
        if instruction == "FROM":
            found.append(Stage(argument))
        elif found:
            found[-1].steps.append((instruction, " ".join(argument.split())))
    return found


def copied(name: str) -> list[tuple[str, str]]:
    """What the build takes from the checkout: (source, target)."""
    pairs = [shlex.split(argument) for argument in stages(name)[0].of("COPY")]
    return [(source, target) for source, target in pairs]


def interpreter(name: str) -> str:
    """Python with what the image has installed; skips the test where nobody made it."""
    path = ROOT / ".venv-images" / name / "bin" / "python"
    if not path.exists():
        pytest.skip("The images' environments are not there: 'make image-environments' makes them.")
    return str(path)


def lay_out(name: str, folder: Path) -> Path:
    """The tree below /opt/consort of an image, as its steps make it; returns the folder."""
    folder.mkdir(parents=True)
    for source, target in copied(name):
        if target.startswith("/tmp/"):  # noqa: S108 - a path of the build
            continue
        place = folder / target
        if (ROOT / source).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.po")
            shutil.copytree(ROOT / source, place, ignore=ignored)
        else:
            shutil.copy2(ROOT / source, place)
    return folder


def run_steps(name: str, folder: Path) -> None:
    """The steps that work on the tree, with the image's libraries; raises CalledProcessError."""
    for step in stages(name)[0].of("RUN"):
        if "/opt/consort" not in step and "compileall" not in step:
            continue
        step = step.replace("/opt/venv/bin/python", interpreter(name))
        step = step.replace(HOME, str(folder)).replace("/tmp/var", str(folder.parent / "var"))  # noqa: S108
        subprocess.run(
            ["/bin/sh", "-euc", step], cwd=folder, env=clean_environment(), check=True, timeout=300,
            capture_output=True,
        )  # fmt: skip


def clean_environment(**more: str) -> dict[str, str]:
    """Nothing of the person who runs the tests."""
    return {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"} | more
