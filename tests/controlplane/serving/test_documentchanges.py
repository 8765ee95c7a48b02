"""What differs between two documents, and how carefully routers get it."""

import msgspec
import pytest

from controlplane.serving.documentchanges import (
    Change,
    change_between,
    settings_sha256,
    with_settings_of,
)
from controlplane.serving.documents import build
from routing.core.document import KeySpec, Policy, PoolDocument, Slo
from tests.controlplane.serving.test_documents import endpoint, pool


def key(number: int) -> KeySpec:
    return KeySpec(id=f"k{number}", sha256=f"{number:064x}", tenant="acme", project="p")


def changed(old: PoolDocument, **fields: object) -> PoolDocument:
    return msgspec.structs.replace(old, version=old.version + 1, **fields)


@pytest.fixture
def old() -> PoolDocument:
    return changed(build(pool(endpoints=[endpoint()])), keys=(key(1), key(2)))


def test_fewer_keys_and_nothing_else_takes_rights(old: PoolDocument) -> None:
    assert change_between(old, changed(old, keys=(key(1),))) is Change.RIGHTS_TAKEN


@pytest.mark.parametrize(
    "fields",
    [
        {"keys": (key(1), key(2), key(3))},
        {"keys": (key(1), key(3))},
        {"keys": (key(1),), "endpoints": ()},
        {"endpoints": ()},
    ],
)
def test_keys_that_come_and_engines_are_routine(
    old: PoolDocument, fields: dict[str, object]
) -> None:
    assert change_between(old, changed(old, **fields)) is Change.ROUTINE


@pytest.mark.parametrize(
    "fields",
    [
        {"policy": Policy(name="random")},
        {"slo": Slo(ttft_seconds=1.0)},
        {"keys": (), "objectives": {"batch": -1}},
    ],
)
def test_what_people_decide_is_a_matter_of_settings(
    old: PoolDocument, fields: dict[str, object]
) -> None:
    assert change_between(old, changed(old, **fields)) is Change.SETTINGS


def test_the_first_document_needs_no_care(old: PoolDocument) -> None:
    assert change_between(None, old) is Change.ROUTINE


def test_settings_of_another_version_keep_what_follows_engines_and_keys(old: PoolDocument) -> None:
    bad = changed(old, policy=Policy(name="random"), keys=(key(3),))

    found = with_settings_of(bad, old)

    assert (found.version, found.keys, found.policy) == (bad.version, bad.keys, old.policy)
    assert settings_sha256(found) == settings_sha256(old)
