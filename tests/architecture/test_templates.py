"""A template starts with `_` if and only if it extends nothing."""

import re
from pathlib import Path

import pytest

from tests.architecture.sources import name_of, tracked

TEMPLATES = [path for path in tracked("templates/*.html") if path.name != "base.html"]


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_fragments_start_with_an_underscore_and_pages_extend(path: Path) -> None:
    extends = re.match(r"\s*\{% extends ", path.read_text()) is not None

    assert extends != path.name.startswith("_")


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_no_inline_script_or_style(path: Path) -> None:
    text = path.read_text()

    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|hx-on|javascript:", text)
