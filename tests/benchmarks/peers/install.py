"""Puts the peers into environments of their own, and builds the load tools.

Versions are pinned: a ratio belongs to the versions it was measured with.
"""

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = {
    "sglang": ["sglang-router==0.3.2"],
    "vllm": ["vllm-router==0.1.17"],
    "dynamo": ["ai-dynamo-runtime==1.6.1", "pyzmq==27.3.0", "msgpack==1.2.4"],
}


def install(work: Path) -> dict[str, bool]:
    """Environments `work/venv-NAME` and the two tools; says which peers are there."""
    build(work)
    return {name: _environment(work / f"venv-{name}", wanted) for name, wanted in PEERS.items()}


def build(work: Path) -> None:
    """The two tools alone."""
    work.mkdir(parents=True, exist_ok=True)
    for tool in ("fakebackend", "loadgen"):
        subprocess.run(["gcc", "-O2", "-o", work / tool, HERE / f"{tool}.c"], check=True)


def _environment(folder: Path, wanted: list[str]) -> bool:
    mark = folder / "installed.txt"
    if mark.is_file() and mark.read_text().split() == wanted:
        return True
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "--only-binary", ":all:", *wanted], check=False, timeout=900)
    if done.returncode:
        print(f"{folder.name} could not be installed; it is left out.", file=sys.stderr)
        return False
    mark.write_text("\n".join(wanted))
    return True
