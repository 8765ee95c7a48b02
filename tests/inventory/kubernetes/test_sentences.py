"""Codes of unusable credentials and their sentences belong together."""

import ast
from collections.abc import Iterator

from inventory.kubernetes.sentences import SENTENCES, gettext_noop
from tests.architecture.sources import ROOT

SOURCES = ROOT / "inventory" / "kubernetes"


def test_every_sentence_belongs_to_a_code_that_is_raised_and_the_other_way_round() -> None:
    assert set(_codes()) == set(SENTENCES)


def test_a_sentence_is_itself_until_a_page_translates_it() -> None:
    assert gettext_noop("The kubeconfig is not YAML.") == SENTENCES["kubeconfig-not-yaml"]


def _codes() -> Iterator[str]:
    """First arguments of CredentialsError, and codes in the table of forbidden keys."""
    for path in SOURCES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "CredentialsError":
                yield from _texts(node.args[:1])
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_FORBIDDEN":
                assert isinstance(node.value, ast.Dict)
                yield from _texts(node.value.values)


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
