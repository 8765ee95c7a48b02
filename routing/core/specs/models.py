"""Models that a pool serves, and how their prompts are identified."""

from typing import Annotated, Literal

import msgspec

from routing.core.specs.base import Positive, Rate, Slug, Strict

FolderName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]


class ModelSpec(Strict, frozen=True, kw_only=True):
    """A model name that clients may ask for."""

    name: Slug
    max_model_len: Positive
    revision: Slug | None = None
    adapter_of: Slug | None = None
    """Name of the base model when this name is an adapter."""
    requires: Annotated[tuple[Slug, ...], msgspec.Meta(max_length=20)] = ()
    """Capabilities that an endpoint must have to serve it."""


class PromptIdentity(Strict, frozen=True, kw_only=True):
    """How a prompt becomes block keys.

    `bytes` needs nothing, `tokens` needs tokenizer files at the router, `engine` asks engines to
    tokenise each segment once.
    """

    mode: Literal["bytes", "tokens", "engine"] = "bytes"
    chunk_bytes: Annotated[int, msgspec.Meta(ge=16, le=65536)] = 256
    bytes_per_token: Rate = 4.0
    """First guess; learned from the engines' usage afterwards."""
    block_tokens: Annotated[int, msgspec.Meta(ge=1, le=4096)] = 16
    """Tokens per block key in the modes `tokens` and `engine`."""
    tokenizer: FolderName | None = None
    """Folder of tokenizer files under the router's tokenizer folder; needed by mode `tokens`."""
    cache_bytes: Positive = 64 * 1024 * 1024
    """Bound of the cache of tokenised segments."""
