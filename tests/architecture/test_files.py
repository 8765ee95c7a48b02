"""Files are short, mirrored by tests, and free of what belongs to one machine."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, code_files, name_of, tracked

MOST_LINES = 400
NO_TEST_OF_THEIR_OWN = {"__init__.py", "__main__.py", "apps.py", "urls.py", "wsgi.py", "base.py"}
# Rows and thin edges are tested through the services, views and tasks that use them.
TESTED_THROUGH_OTHERS = re.compile(
    r"(^|/)(models|migrations|management)(/|\.py$)|/(errors|admin)\.py$"
)


@pytest.mark.parametrize("path", code_files(), ids=name_of)
def test_a_file_has_at_most_400_lines(path: Path) -> None:
    lines = path.read_text().count("\n")

    assert lines <= MOST_LINES, f"{lines} lines: split by noun, keep one topic a file"


def test_every_source_file_with_logic_has_its_test_file() -> None:
    missing = [name_of(path) for path in code_files() if _needs_test(path) and not _test_of(path)]

    assert missing == []


def test_no_package_index_or_machine_path_is_written_down() -> None:
    allowed = {"tests/architecture/test_files.py"}
    pattern = re.compile(
        r"index-url|pypi\.org|files\.pythonhosted|deb\.debian|registry\.npmjs|/work/|/root/|\.\./shared"
    )
    texts = tracked("*.py", "*.md", "*.toml", "*.txt", "*.yaml", "*.html", "Makefile", ".ci/*")

    found = [
        name_of(path)
        for path in texts
        if name_of(path) not in allowed and pattern.search(path.read_text(errors="replace"))
    ]

    assert found == []


def _needs_test(path: Path) -> bool:
    relative = name_of(path)
    if relative.startswith("deploy/") or path.name in NO_TEST_OF_THEIR_OWN:
        return False
    if TESTED_THROUGH_OTHERS.search(relative):
        return False
    tree = ast.parse(path.read_text())
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(tree))


def _test_of(path: Path) -> bool:
    """A test file of the same name, or one for its folder, in the mirrored place."""
    relative = path.relative_to(ROOT)
    folder = ROOT / "tests" / relative.parent
    stem = path.stem.removeprefix("_")
    return (
        any(folder.glob(f"test_{stem}*.py"))
        or any((folder / stem).glob("test_*.py"))
        or any(folder.parent.glob(f"test_{relative.parent.name}*.py"))
    )
