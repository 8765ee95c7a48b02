"""Loaded documents: who may ask for what, and where they are kept."""

from pathlib import Path
from typing import Any

import pytest

from routing.core.document import DocumentError, encode_document
from routing.servers.documents import (
    DEFAULT_BODY_BYTES,
    Directory,
    KeyRefusedError,
    document_sha256,
)
from routing.servers.shelf import VersionNotNewerError
from tests.routing.servers.scripted import Engine, answers, document, key

ENGINES = [Engine("a", answers, port=8000)]


def load(directory: Directory, **changes: Any) -> None:
    directory.apply(encode_document(document(ENGINES, **changes)))


@pytest.fixture
async def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path, router_name="r1")


async def test_a_key_opens_its_models_in_every_pool_that_knows_it(directory: Directory) -> None:
    load(directory, pool="b", models=[{"name": "m2", "max_model_len": 9}], keys=[key("ana", "s")])
    load(
        directory,
        pool="a",
        models=[{"name": "m1", "max_model_len": 9}, {"name": "m3", "max_model_len": 9}],
        keys=[key("ana", "s", models=["m1"]), key("ben", "t")],
    )

    ana, ben = directory.access(b"s", now=0.0), directory.access(b"t", now=0.0)

    assert [(pool.document.pool, model.name) for pool, model in ana.models()] == [
        ("a", "m1"),
        ("b", "m2"),
    ]
    assert [model.name for _, model in ben.models()] == ["m1", "m3"]
    assert ana.pool_of("m3") is None
    assert ben.pool_of("m2") is None


@pytest.mark.parametrize(
    ("secret", "now", "code"),
    [
        (b"", 0.0, "missing_api_key"),
        (b"other", 0.0, "invalid_api_key"),
        (b"s", 100.0, "expired_api_key"),
    ],
)
async def test_a_key_that_does_not_open_anything_says_why(
    directory: Directory, secret: bytes, now: float, code: str
) -> None:
    load(directory, keys=[key("ana", "s", expires_at=100.0)])

    with pytest.raises(KeyRefusedError) as raised:
        directory.access(secret, now=now)

    assert raised.value.code == code


async def test_a_key_that_left_the_document_opens_nothing(directory: Directory) -> None:
    load(directory, keys=[key("ana", "s")])
    load(directory, version=2, keys=[])

    with pytest.raises(KeyRefusedError):
        directory.access(b"s", now=0.0)


async def test_a_refused_document_leaves_the_files_as_they_are(
    directory: Directory, tmp_path: Path
) -> None:
    load(directory, version=2)
    (path,) = tmp_path.glob("*.json")
    before = path.read_bytes()

    with pytest.raises(VersionNotNewerError):
        load(directory, version=1)
    with pytest.raises(DocumentError):
        directory.apply(b'{"pool": "main"}')

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


async def test_a_kept_document_that_cannot_be_read_leaves_the_other_pools_in_service(
    directory: Directory, tmp_path: Path
) -> None:
    load(directory)
    good = encode_document(document(ENGINES, pool="other"))
    (tmp_path / "0.json").write_bytes(good[: len(good) // 2])
    (tmp_path / "1.json").write_bytes(good.replace(b'"engine":"vllm"', b'"engine":"trtllm"'))
    (tmp_path / "2.json").write_bytes(good.replace(b":8000", b":80000"))
    (tmp_path / "3.json").mkdir()

    again = Directory(tmp_path, router_name="r1")
    again.load_kept()

    assert list(again.pools) == ["main"]


async def test_a_document_of_an_unusable_address_is_refused_before_it_is_kept(
    directory: Directory, tmp_path: Path
) -> None:
    raw = encode_document(document(ENGINES)).replace(b":8000", b":80000")

    with pytest.raises(DocumentError) as raised:
        directory.apply(raw)

    assert raised.value.pointer == "/endpoints/0/url"
    assert not list(tmp_path.iterdir())


async def test_the_largest_body_of_all_pools_is_read(directory: Directory) -> None:
    assert directory.body_bytes == DEFAULT_BODY_BYTES

    load(directory, limits={"body_bytes": 100})
    load(directory, pool="other", limits={"body_bytes": 300})

    assert directory.body_bytes == 300


async def test_listeners_hear_of_each_swap_and_not_of_repetitions(directory: Directory) -> None:
    heard: list[int] = []
    directory.on_change = lambda: heard.append(1)

    load(directory, version=1)
    load(directory, version=1)
    load(directory, version=2)

    assert len(heard) == 2


def test_equal_documents_have_equal_hashes() -> None:
    assert document_sha256(document(ENGINES)) == document_sha256(document(ENGINES))
    assert document_sha256(document(ENGINES)) != document_sha256(document(ENGINES, version=2))
