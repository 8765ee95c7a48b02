"""From a body to exact block keys: read the prompt, cut it, look the pieces up."""

from typing import Any, Protocol

import msgspec
import numpy as np

from routing.core.bodies.wire import Turns
from routing.core.openai import ExactPrompt
from routing.core.prompt import BlockKeys, exact_root
from routing.identity.chains import Chains, Tokenise
from routing.identity.conversation import (
    Conversation,
    NotPlainError,
    check_size,
    conversation_of,
)
from routing.identity.pieces import Piece

_NOTHING: BlockKeys = np.zeros(0, dtype=np.uint64)
_PLAIN_PATHS = {"/v1/completions": "prompt", "/v1/embeddings": "input"}


class PieceSource(Protocol):
    """Knows how an engine writes a prompt: from files, or from what it was asked."""

    def of_conversation(self, conversation: Conversation) -> list[Piece]:
        """Pieces of a conversation. Raises NotPlainError."""

    def of_text(self, text: str) -> list[Piece]:
        """Pieces of a plain prompt. Raises NotPlainError."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out about a prompt, and which texts an engine is to be asked about."""

    prompt: ExactPrompt
    missing: tuple[str, ...] = ()


class _Plain(msgspec.Struct):
    prompt: Any = None
    input: Any = None
    add_special_tokens: bool = True
    truncate_prompt_tokens: int | None = None


_PLAIN = msgspec.json.Decoder(_Plain)


class PromptReader:
    """Reads the prompts of one pool."""

    def __init__(self, source: PieceSource, chains: Chains) -> None:
        self.source = source
        self.chains = chains

    def read(
        self,
        path: str,
        body: bytes,
        turns: Turns | None = None,
        *,
        adapter: str | None,
        salt: str | None,
        tokenise: Tokenise,
    ) -> Reading:
        """Keys of a checked body; a prompt that is not plain text says so in `degraded`.

        `turns` are its messages where they are all that the prompt is made of.
        """
        try:
            pieces = self._pieces(path, body, turns)
        except NotPlainError as error:
            return Reading(prompt=unknown(f"prompt-{error.reason}"))
        found = self.chains.identify(pieces, exact_root(adapter, salt), tokenise)
        if found.missing and not len(found.block_keys):
            # Without a key, siblings would not find together.
            return Reading(prompt=unknown("tokens-not-known-yet"), missing=found.missing)
        prompt = ExactPrompt(
            block_keys=found.block_keys, tokens=found.tokens, unknown_bytes=found.missing_bytes
        )
        return Reading(prompt=prompt, missing=found.missing)

    def _pieces(self, path: str, body: bytes, turns: Turns | None) -> list[Piece]:
        if turns is not None:
            check_size(len(body), len(turns))
            return self.source.of_conversation(Conversation(messages=turns))
        name = _PLAIN_PATHS.get(path)
        if name is None:
            return self.source.of_conversation(conversation_of(path, body))
        try:
            fields = _PLAIN.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise NotPlainError("unknown-shape") from None
        text = getattr(fields, name)
        if isinstance(text, list) and len(text) == 1:
            text = text[0]
        if not isinstance(text, str):
            raise NotPlainError("several-texts")
        if not fields.add_special_tokens or fields.truncate_prompt_tokens is not None:
            raise NotPlainError("own-template")
        return self.source.of_text(text)


def unknown(reason: str) -> ExactPrompt:
    """Nothing is known of a prompt, for a reason that decisions tell."""
    return ExactPrompt(block_keys=_NOTHING, tokens=0, unknown_bytes=0, degraded=reason)
