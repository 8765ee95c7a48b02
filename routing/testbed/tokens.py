"""The testbed's tokeniser, its chat template and the text that simulated engines answer.

A token is a piece of four bytes; its id is those bytes as a little-endian number, so that ids and
text turn into each other without a vocabulary. Each part of a chat is cut on its own and filled up
with NUL, so that the next turn of a conversation starts with the tokens of the turn before.
"""

import sys
from array import array
from collections.abc import Iterable, Sequence

import xxhash

PIECE_BYTES = 4

# Exactly four bytes each: a piece of text is one token, and all stream chunks have equal length.
_WORDS = (
    "the and for are but not you all any can had her was one our out day get has him his how "
    "man new now old see two way who boy did its let put say she too use air ask bed big box "
    "bus car cat cup cut dog dry ear eat egg end eye far few fly fun gas hot ice key kid law "
    "leg lie map mix net oak oil own pan pay pen pie red row run sea set shy sit six sky son "
    "sun tea ten tie tin top toy try van war wet why win yes zoo add age aid aim arm art bad "
    "bag ban bar bat bay bit bow cow cry die dot due ego fan fat fee fig fit"
)
PIECES: tuple[bytes, ...] = tuple(f" {word}".encode() for word in _WORDS.split())
PIECE_IDS: tuple[int, ...] = tuple(int.from_bytes(piece, "little") for piece in PIECES)
_PIECE_OF = frozenset(PIECE_IDS)

_ROOT = b"vllm-none-hash"
_GOLDEN = 0x9E3779B97F4A7C15
_MIX = 0xBF58476D1CE4E5B9
_MASK = (1 << 64) - 1


def tokenize(segments: Iterable[bytes]) -> "array[int]":
    """Token ids of text segments, each cut on its own."""
    ids = array("I")
    ids.frombytes(b"".join(part + bytes(-len(part) % PIECE_BYTES) for part in segments))
    if sys.byteorder == "big":
        ids.byteswap()
    return ids


def detokenize(ids: Sequence[int]) -> str:
    """Text of token ids; the filling at segment ends disappears."""
    raw = b"".join(number.to_bytes(PIECE_BYTES, "little") for number in ids)
    return raw.replace(b"\0", b"").decode("utf-8", "replace")


def chat_segments(
    messages: Iterable[tuple[str, str]], *, answer: bool = True, is_open: bool = False
) -> list[bytes]:
    """Segments of a chat (role, text).

    `answer` adds the opening of the assistant's turn; with `is_open` the last turn is not closed,
    so that the model goes on with it.
    """
    segments: list[bytes] = []
    for role, text in messages:
        segments.append(f"<|im_start|>{role}\n".encode())
        segments.append(text.encode("utf-8", "surrogatepass"))
        segments.append(b"<|im_end|>\n")
    if is_open:
        del segments[-1:]
    if answer:
        segments.append(b"<|im_start|>assistant\n")
    return segments


def root_key(cache_salt: str | None, adapter: str | None = None) -> int:
    """Start of a block chain. Prompts with different salts or adapters never share a block."""
    root = _ROOT + (cache_salt or "").encode("utf-8", "surrogatepass")
    seed = xxhash.xxh3_64_intdigest(adapter.encode("utf-8", "surrogatepass")) if adapter else 0
    return xxhash.xxh3_64_intdigest(root, seed=seed)


def block_keys(tokens: "array[int]", block_size: int, root: int) -> "array[int]":
    """Chained 64-bit keys of the whole blocks of a prompt, in order."""
    raw = memoryview(tokens.tobytes())
    width = block_size * PIECE_BYTES
    keys = array("Q")
    key = root
    for start in range(0, len(raw) - width + 1, width):
        key = xxhash.xxh3_64_intdigest(raw[start : start + width], seed=key)
        keys.append(key)
    return keys


def prompt_key(tokens: "array[int]") -> int:
    """A number that stands for the whole prompt; answers follow from it alone."""
    return xxhash.xxh3_64_intdigest(tokens.tobytes())


def answer_piece(key: int, position: int) -> int:
    """Index into PIECES of the answer's token at a position: same prompt, same text."""
    mixed = (key + position * _GOLDEN) & _MASK
    return ((mixed ^ mixed >> 31) * _MIX & _MASK) >> 57


def choice_key(key: int, choice: int) -> int:
    """The key of one of several answers to a prompt; that of the first is the prompt's own."""
    return (key + choice * _MIX) & _MASK


def spoken_answer(tokens: "array[int]") -> tuple[int, int]:
    """Key of the prompt that the end of `tokens` answers, and how many tokens of that answer it is.

    A model goes on where it was: a prompt followed by the begin of its own answer continues that
    answer. The longest such end counts; with none the whole is a prompt of which nothing is spoken.
    """
    first = len(tokens)
    while first and tokens[first - 1] in _PIECE_OF:
        first -= 1
    raw = tokens.tobytes()
    hasher = xxhash.xxh3_64(raw[: first * PIECE_BYTES])
    for begin in range(first, len(tokens)):
        key = hasher.intdigest()
        if all(
            PIECE_IDS[answer_piece(key, position)] == token
            for position, token in enumerate(tokens[begin:])
        ):
            return key, len(tokens) - begin
        hasher.update(raw[begin * PIECE_BYTES : (begin + 1) * PIECE_BYTES])
    return hasher.intdigest(), 0


def natural_length(key: int) -> int:
    """Tokens after which the simulated model ends on its own: 128 to 639, from the prompt alone."""
    return 128 + (key >> 17) % 512
