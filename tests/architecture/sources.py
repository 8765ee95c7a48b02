"""What the architecture tests read: our own files, as git knows them."""

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("controlplane", "inventory", "routing", "deploy")


@cache
def tracked(*patterns: str) -> tuple[Path, ...]:
    """Files of the tree (tracked or about to be) that match the patterns."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return tuple(ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file())


def code_files() -> list[Path]:
    """Python sources of the product, without migrations."""
    return [
        path
        for path in tracked("*.py")
        if path.relative_to(ROOT).parts[0] in CODE and "migrations" not in path.parts
    ]


def name_of(path: Path) -> str:
    """Path as a person writes it."""
    return str(path.relative_to(ROOT))
