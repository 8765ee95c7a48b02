"""Block keys of prompts."""

import hypothesis.strategies as st
import numpy as np
import pytest
import xxhash
from hypothesis import given, settings

from routing.core.prompt import (
    block_keys,
    canonical,
    chain,
    exact_root,
    root_key,
    token_block_keys,
)


def test_keys_are_chained_xxh3() -> None:
    first = xxhash.xxh3_64_intdigest(b"a" * 16, 5)
    second = xxhash.xxh3_64_intdigest(b"b" * 16, first)

    keys = block_keys(b"a" * 16 + b"b" * 16 + b"rest", root=5, chunk_bytes=16)

    assert keys.tolist() == [first, second]
    assert keys.dtype == np.uint64


@pytest.mark.parametrize(("size", "count"), [(0, 0), (15, 0), (16, 1), (31, 1), (32, 2)])
def test_only_whole_chunks_have_a_key(size: int, count: int) -> None:
    assert len(block_keys(b"x" * size, root=0, chunk_bytes=16)) == count


@pytest.mark.parametrize("count", [0, 1, 11, 12, 13, 4096, 4097, 10_000])
def test_long_and_short_prompts_are_cut_alike(count: int) -> None:
    raw = bytes(range(251)) * (count * 8 // 251 + 1)
    raw = raw[: count * 8 + 3]
    expected, parent = [], 5
    for start in range(0, count * 8, 8):
        parent = xxhash.xxh3_64_intdigest(raw[start : start + 8], parent)
        expected.append(parent)

    keys = chain(raw, root=5, width=8)

    assert keys == expected


def test_equal_chunks_at_different_places_have_different_keys() -> None:
    keys = block_keys(b"x" * 160, root=0, chunk_bytes=16).tolist()

    assert len(set(keys)) == 10


@pytest.mark.parametrize(
    ("first", "second"),
    [(("ab", "c"), ("a", "bc")), (("a", None), (None, "a")), (("a",), ("a", None))],
)
def test_roots_of_different_parts_differ(
    first: tuple[str | None, ...], second: tuple[str | None, ...]
) -> None:
    assert root_key(*first) != root_key(*second)


@settings(deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(0, 2**64 - 1))
def test_a_difference_changes_its_own_key_and_all_after_it(
    first: bytes, second: bytes, root: int
) -> None:
    keys = [block_keys(text, root=root, chunk_bytes=16).tolist() for text in (first, second)]
    pairs = list(zip(*keys, strict=False))
    same = 0
    while same < len(pairs) and first[same * 16 : same * 16 + 16] == second[same * 16 :][:16]:
        same += 1

    assert all(left == right for left, right in pairs[:same])
    assert all(left != right for left, right in pairs[same:])


def test_text_that_is_no_valid_unicode_is_hashed_too() -> None:
    assert canonical(["\ud800", b"x"])


def test_token_keys_are_the_same_from_bytes_and_from_an_array() -> None:
    ids = np.arange(1, 41, dtype=np.uint32)

    keys = token_block_keys(ids, root=exact_root(None, None), block_tokens=16)

    raw = ids.astype("<u4").tobytes()
    assert (
        keys.tolist()
        == token_block_keys(raw, root=exact_root(None, None), block_tokens=16).tolist()
    )
    assert len(keys) == 2


@pytest.mark.parametrize("other", [("a", None), (None, "s"), ("s", None), ("a", "s")])
def test_adapters_and_salts_have_roots_of_their_own(other: tuple[str | None, str | None]) -> None:
    adapter, salt = other

    assert exact_root(adapter, salt) not in {exact_root(None, None), exact_root(salt, adapter)}


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=6), max_size=6))
def test_text_and_its_bytes_are_the_same_piece(parts: list[str]) -> None:
    raw = [part.encode("utf-8", "surrogatepass") for part in parts]

    assert canonical(parts) == canonical(raw) == canonical([*parts[:1], *raw[1:]])
