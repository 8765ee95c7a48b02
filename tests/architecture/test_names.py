"""Names that are written as text resolve: tasks, settings, problem pages."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.utils.module_loading import import_string

from controlplane.common.errors import DomainError
from controlplane.common.jobs import whole_path
from tests.architecture.sources import ROOT, code_files


def test_every_task_path_resolves_to_a_celery_task() -> None:
    unresolved = [path for path in _task_paths() if not hasattr(import_string(path), "delay")]

    assert unresolved == []


def test_every_variable_that_settings_read_is_documented_above_it() -> None:
    text = (ROOT / "controlplane/config/settings.py").read_text()
    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', text)) - {"TEST_DATABASE"}
    documented = set(re.findall(r"[A-Z][A-Z_]{3,}", "\n".join(re.findall(r"^# .*$", text, re.M))))

    assert read <= documented


def test_codes_of_errors_are_unique_and_every_error_says_what_to_do() -> None:
    classes = list(_subclasses(DomainError))
    codes = [kind.code for kind in classes]

    assert sorted(set(codes)) == sorted(codes)
    assert [kind.__name__ for kind in classes if not kind.message or not kind.title] == []


def _task_paths() -> Iterator[str]:
    """First string of `after_commit(...)`, and `task=` of `operations.start(...)`."""
    for path in code_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield from _paths_in(node, path)


def _paths_in(call: ast.Call, path: Path) -> Iterator[str]:
    called = ast.unparse(call.func)
    texts: list[ast.expr] = []
    if called.endswith("after_commit"):
        texts = call.args[:1]
    elif called.endswith("operations.start"):
        texts = [keyword.value for keyword in call.keywords if keyword.arg == "task"]
    for text in texts:
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield whole_path(text.value)


def _subclasses(kind: type[DomainError]) -> Iterator[type[DomainError]]:
    for below in kind.__subclasses__():
        if below.__module__.startswith(("controlplane.", "inventory.")):
            yield below
            yield from _subclasses(below)
