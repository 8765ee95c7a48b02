"""Block keys of prompts."""

import hypothesis.strategies as st
import numpy as np
import pytest
import xxhash
from hypothesis import given, settings

from routing.core.prompt import block_keys, canonical, root_key


def test_keys_are_chained_xxh3() -> None:
    first = xxhash.xxh3_64_intdigest(b"a" * 16, 5)
    second = xxhash.xxh3_64_intdigest(b"b" * 16, first)

    keys = block_keys(b"a" * 16 + b"b" * 16 + b"rest", root=5, chunk_bytes=16)

    assert keys.tolist() == [first, second]
    assert keys.dtype == np.uint64


@pytest.mark.parametrize(("size", "count"), [(0, 0), (15, 0), (16, 1), (31, 1), (32, 2)])
def test_only_whole_chunks_have_a_key(size: int, count: int) -> None:
    assert len(block_keys(b"x" * size, root=0, chunk_bytes=16)) == count


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
