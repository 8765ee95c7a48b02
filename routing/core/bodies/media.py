"""Images, sound, video and files in a prompt: known by their content, with a guess of their tokens.

Engines put placeholders into the token ids, which hash alike for every image; so the content's own
hash stands for it. It is repeated for as many bytes as the guessed tokens have, so that sizes and
hits of a prompt stay in proportion.
"""

import struct
from base64 import b64decode
from binascii import Error as Base64Error

import msgspec
import xxhash

PIXELS_PER_TOKEN = 28 * 28
"""A merged patch of Qwen2-VL and its successors; others are near."""
UNKNOWN_IMAGE_TOKENS = 1024
"""About a picture of 1,024 x 768; taken for addresses and formats whose size is not at hand."""
MOST_IMAGE_TOKENS = 16_384
SOUND_TOKENS_PER_KILOBYTE = 3
FILE_BYTES_PER_TOKEN = 32
"""Text in a PDF is a small part of its bytes."""
MOST_MEDIA_TOKENS = 65_536
_HEAD_CHARACTERS = 4096
"""Start of the base64 text in which the size of a picture is looked for."""
_JPEG_SIZES = frozenset({0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB})


class _Address(msgspec.Struct):
    url: str | None = None
    data: str | None = None
    file_data: str | None = None
    file_id: str | None = None


_ADDRESS = msgspec.json.Decoder(str | _Address)


def piece(kind: str, value: bytes | str, *, bytes_per_token: float) -> bytes:
    """What stands for one medium in the canonical prompt. `value` is the member's JSON or text."""
    content = value if isinstance(value, str) else _content(value)
    raw = content.encode("utf-8", "surrogatepass")
    digest = xxhash.xxh3_128_digest(kind.encode() + b":" + raw)
    size = round(tokens(kind, content) * bytes_per_token)
    return (digest * (size // len(digest) + 1))[: max(size, len(digest))]


def _content(value: bytes) -> str:
    """The address or the data itself; two spellings of one picture are one content."""
    try:
        found = _ADDRESS.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value.decode("utf-8", "replace")
    if isinstance(found, str):
        return found
    return found.url or found.data or found.file_data or found.file_id or value.decode()


def tokens(kind: str, content: str) -> int:
    """A guess of the tokens of a medium; the engine's own count is learned from its usage."""
    if kind == "image":
        size = _picture_size(content)
        if size is None:
            return UNKNOWN_IMAGE_TOKENS
        return min(max(size[0] * size[1] // PIXELS_PER_TOKEN, 4), MOST_IMAGE_TOKENS)
    if kind == "audio":
        guess = len(content) * 3 // 4 // 1024 * SOUND_TOKENS_PER_KILOBYTE
    else:
        guess = len(content) * 3 // 4 // FILE_BYTES_PER_TOKEN
    return min(max(guess, 64), MOST_MEDIA_TOKENS)


def _picture_size(content: str) -> tuple[int, int] | None:
    """Width and height in pixels of a picture that came as base64; `None` if it does not say."""
    start = content.find("base64,", 0, 200) + 7 if content.startswith("data:") else 0
    if start == 6 or content.startswith(("http://", "https://")):
        return None
    text = content[start : start + _HEAD_CHARACTERS]
    try:
        head = b64decode(text[: len(text) // 4 * 4])
    except (Base64Error, ValueError):
        return None
    if head.startswith(b"\x89PNG") and len(head) >= 24:
        return struct.unpack_from(">II", head, 16)
    if head.startswith(b"GIF8") and len(head) >= 10:
        return struct.unpack_from("<HH", head, 6)
    return _jpeg_size(head) if head.startswith(b"\xff\xd8") else None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        if head[at + 1] in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        at += 2 + max(2, int.from_bytes(head[at + 2 : at + 4], "big"))
    return None
