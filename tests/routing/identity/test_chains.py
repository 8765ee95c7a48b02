"""Keys of prompts in pieces are those of the whole, whatever is remembered."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from routing.core.prompt import exact_root, token_block_keys
from routing.identity.chains import Bounded, Chains
from routing.identity.pieces import Piece

ROOT = exact_root(None, None)


def tokenise(text: str) -> bytes:
    return np.frombuffer(text.encode(), dtype=np.uint8).astype("<u4").tobytes()


def nothing(text: str) -> None:
    return None


def chains(cache_bytes: int = 10**6) -> Chains:
    return Chains(block_tokens=16, cache_bytes=cache_bytes, secret=5)


def whole(pieces: list[Piece], root: int = ROOT) -> list[int]:
    raw = b"".join(piece.lead + tokenise(piece.text) for piece in pieces)
    return token_block_keys(raw, root=root, block_tokens=16).tolist()


PIECES = st.lists(
    st.builds(
        Piece,
        st.lists(st.integers(0, 2**32 - 1), max_size=3).map(
            lambda ids: np.array(ids, dtype="<u4").tobytes()
        ),
        st.text("abc", max_size=60),
    ),
    max_size=8,
)


@given(st.lists(PIECES, max_size=6), st.sampled_from([0, 2000, 10**6]))
def test_keys_are_those_of_the_ids_in_a_row(prompts: list[list[Piece]], cache_bytes: int) -> None:
    memory = chains(cache_bytes)

    for pieces in [*prompts, *prompts]:
        found = memory.identify(pieces, ROOT, tokenise)
        assert found.block_keys.tolist() == whole(pieces)
        assert found.tokens == sum(len(p.lead) // 4 + len(p.text) for p in pieces)
        assert found.missing == ()
        assert memory.held_bytes <= cache_bytes


def test_a_known_beginning_is_not_tokenised_again() -> None:
    memory, asked = chains(), []

    def asking(text: str) -> bytes:
        asked.append(text)
        return tokenise(text)

    system, question = Piece(b"\1\0\0\0", "s" * 500), Piece(b"", "q" * 40)
    memory.identify([system, question], ROOT, asking)
    memory.identify([system, Piece(b"", "r" * 40)], ROOT, asking)
    memory.identify([question, system], ROOT, asking)

    assert asked == ["s" * 500, "q" * 40, "r" * 40]


def test_roots_keep_equal_prompts_apart() -> None:
    memory, pieces = chains(), [Piece(b"", "s" * 500)]
    other = exact_root("lora", "salt")

    one, two = (memory.identify(pieces, root, tokenise).block_keys for root in (ROOT, other))

    assert not set(one.tolist()) & set(two.tolist())
    assert two.tolist() == whole(pieces, other)


def test_keys_end_at_the_first_gap_and_the_count_goes_on() -> None:
    memory = chains()
    memory.learn("a" * 40, tokenise("a" * 40))
    memory.learn("c" * 32, tokenise("c" * 32))
    pieces = [Piece(b"", "a" * 40), Piece(b"\1\0\0\0", "é" * 50), Piece(b"", "c" * 32)]

    found = memory.identify(pieces, ROOT, nothing)

    assert found.block_keys.tolist() == whole(pieces[:1])
    assert (found.tokens, found.missing, found.missing_bytes) == (73, ("é" * 50,), 100)
    memory.learn("é" * 50, tokenise("é" * 50))
    assert memory.identify(pieces, ROOT, nothing).block_keys.tolist() == whole(pieces)


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    memory: Bounded[str] = Bounded(1500)
    for key in (1, 2):
        memory.put(key, "x", 200)
    memory.get(1)

    memory.put(3, "x", 200)

    assert (memory.get(1), memory.get(2), memory.get(3)) == ("x", None, "x")
    memory.put(4, "too large", 5000)
    assert memory.held_bytes == 0


def test_a_changed_tokenizer_starts_from_nothing() -> None:
    memory = chains()
    memory.identify([Piece(b"", "s" * 500)], ROOT, tokenise)

    memory.forget()

    assert memory.held_bytes == 0
    assert not memory.knows("s" * 500)
