"""Pictures and other media are known by their content, and weigh about what they cost."""

import json
import struct
from base64 import b64encode
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from routing.core.bodies import media
from routing.core.document import PromptIdentity
from routing.core.openai import ParsedBody, parse_request

IDENTITY = PromptIdentity(chunk_bytes=64)


def png(width: int, height: int, filling: bytes = b"") -> str:
    head = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", width, height)
    return "data:image/png;base64," + b64encode(head + filling + b"\0" * 40).decode()


def chat(*parts: dict[str, Any]) -> ParsedBody:
    messages = [{"role": "user", "content": [*parts, {"type": "text", "text": "what? " * 50}]}]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    return parse_request("/v1/chat/completions", body, identity=IDENTITY)


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


@pytest.mark.lesson("X12")
def test_equal_prompts_with_different_pictures_share_no_key() -> None:
    one, other = chat(image(png(64, 64, b"one"))), chat(image(png(64, 64, b"two")))

    assert one.is_multimodal
    assert not set(one.block_keys.tolist()) & set(other.block_keys.tolist())
    assert (one.block_keys == chat(image(png(64, 64, b"one"))).block_keys).all()


@pytest.mark.lesson("X12")
@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "{}", "format": "wav"}},
        {"type": "file", "file": {"file_data": "{}"}},
        {"type": "file", "file": {"file_id": "{}"}},
        {"type": "input_file", "file_url": "{}"},
        {"type": "video_url", "video_url": {"url": "https://{}"}},
        {"type": "image", "source": {"type": "base64", "data": "{}"}},
        {"type": "input_image", "image_url": "https://{}"},
    ],
)
def test_every_kind_of_medium_enters_by_its_content(part: dict[str, Any]) -> None:
    def of(word: str) -> ParsedBody:
        return chat(json.loads(json.dumps(part).replace("{}", word * 300)))

    assert of("a").is_multimodal
    assert of("a").block_keys[0] != of("b").block_keys[0]


def test_the_spelling_of_a_picture_does_not_matter() -> None:
    plain = {"type": "image_url", "image_url": png(64, 64)}
    detailed = {"type": "image_url", "image_url": {"detail": "high", "url": png(64, 64)}}

    assert (chat(plain).block_keys == chat(detailed).block_keys).all()


def test_a_picture_weighs_its_pixels_not_its_bytes() -> None:
    small, large = chat(image(png(56, 56))), chat(image(png(1568, 1568)))

    assert small.prompt_tokens < 100
    assert large.prompt_tokens - small.prompt_tokens == pytest.approx(1568**2 / 784, rel=0.02)


def jpeg(width: int, height: int) -> str:
    raw = b"\xff\xd8\xff\xe0\x00\x10JFIF" + b"\0" * 10
    raw += b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", height, width) + b"\0" * 30
    return "data:image/jpeg;base64," + b64encode(raw).decode()


def gif(width: int, height: int) -> str:
    return (
        "data:image/gif;base64," + b64encode(b"GIF89a" + struct.pack("<HH", width, height)).decode()
    )


@pytest.mark.parametrize("form", [png, jpeg, gif])
def test_the_size_of_a_picture_is_read_from_its_head(form: Any) -> None:
    assert media.tokens("image", form(280, 560)) == 200


@pytest.mark.parametrize(
    "content", ["https://example.invalid/cat.png", "data:,x", "", "!!!", "AAAA", "data:;base64,@@"]
)
def test_a_picture_of_unknown_size_weighs_a_typical_one(content: str) -> None:
    assert media.tokens("image", content) == media.UNKNOWN_IMAGE_TOKENS


@given(st.sampled_from(["image", "audio", "file"]), st.binary(max_size=300))
def test_any_content_has_a_bounded_weight(kind: str, raw: bytes) -> None:
    for text in (b64encode(raw).decode(), b64encode(b"\xff\xd8" + raw).decode()):
        assert 4 <= media.tokens(kind, text) <= media.MOST_MEDIA_TOKENS


def test_a_huge_picture_is_bounded() -> None:
    piece = media.piece(
        "image", json.dumps({"url": png(2**31 - 1, 2**31 - 1)}).encode(), bytes_per_token=4.0
    )

    assert len(piece) == media.MOST_IMAGE_TOKENS * 4
