"""A tokenizer and a chat template from a model's own files.

When it is loaded, a tokenizer is tried on texts of several kinds: if cutting them changes their
ids, it is cut less, down to whole prompts. So a piece is never wrong, only larger.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from tokenizers import Tokenizer

from routing.identity.conversation import Conversation, NotPlainError
from routing.identity.pieces import Cutter, Piece
from routing.identity.template import ChatTemplate, TemplateFileError

_NAMED = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token")
_TRIALS = (
    "The quick brown fox jumps over the lazy dog, isn't it? It's 12345 times 3.14.\n\nNext line.",
    "def main(argv):\n    for i in range(10):\n        print(f'{i} times')\n\treturn None\n",
    "서울은 대한민국의 수도이다 그리고 아름답다. 東京 は 都市です naïve e\u0301te\u0301 x",
    "  leading and   many    spaces \n\n\n and\r\nlines\t\ttabs <b>html</b> {'json': [1]} -- end ",
)


class TokenizerFilesError(ValueError):
    """Files that hold no usable tokenizer; the message says why."""


class TokenizerFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of the files of one model."""

    tokenizer: bytes
    """`tokenizer.json`"""
    settings: bytes | None = None
    """`tokenizer_config.json`"""
    template: bytes | None = None
    """`chat_template.jinja`, which goes before the template in the settings."""


class FileTokenizer:
    """Tokens as the engine computes them, from the model's own files."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        chat_template: str | None = None,
        tool_template: str | None = None,
        special_tokens: Mapping[str, str] | None = None,
        now: Callable[[str], str],
    ) -> None:
        self._tokenizer = tokenizer
        self._special = special_ids(tokenizer)
        named = special_tokens or {}
        self._template, own = (
            ChatTemplate(source, special_tokens=named, now=now) if source else None
            for source in (chat_template, tool_template)
        )
        self._tool_template = own or self._template
        self._before, self._behind = self._frame()
        self.cutter = self._best_cutter()

    def ids(self, text: str) -> bytes:
        """Ids of a text, four little-endian bytes each; nothing is added at its ends."""
        # Only the batch forms let other threads run meanwhile; offsets are not needed.
        (encoded,) = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)
        return _bytes(encoded.ids)

    def of_conversation(self, conversation: Conversation) -> list[Piece]:
        """Pieces of a conversation. Raises NotPlainError."""
        template = self._tool_template if conversation.tools else self._template
        if template is None:
            raise NotPlainError("no-chat-template")
        return self.cutter.pieces(template.render(conversation))

    def of_text(self, text: str) -> list[Piece]:
        """Pieces of a plain prompt, with the tokens that are added at its ends."""
        pieces = self.cutter.pieces(text)
        if self._before:
            first = pieces[0] if pieces else Piece(b"", "")
            pieces[:1] = [Piece(self._before + first.lead, first.text)]
        if self._behind:
            pieces.append(Piece(self._behind, ""))
        return pieces

    def _frame(self) -> tuple[bytes, bytes]:
        """What the tokenizer adds before and behind a plain prompt."""
        bare = list(self._tokenizer.encode("a", add_special_tokens=False).ids)
        framed = list(self._tokenizer.encode("a", add_special_tokens=True).ids)
        for start in range(len(framed) - len(bare) + 1):
            if framed[start : start + len(bare)] == bare:
                return _bytes(framed[:start]), _bytes(framed[start + len(bare) :])
        raise TokenizerFilesError("The tokenizer changes a prompt when it adds special tokens.")

    def _best_cutter(self) -> Cutter:
        """The finest way to cut that changes no id of the trial texts."""
        for cutter, trial in self._cutters():
            if all(self._holds(trial, text) for text in self._trials()):
                return cutter
        return Cutter({}, cuts_text=False)

    def _cutters(self) -> Iterator[tuple[Cutter, Cutter]]:
        """Ways to cut, finest first, each with one that cuts at every chance."""
        for cuts_text in (True, False):
            yield (
                Cutter(self._special, cuts_text=cuts_text),
                Cutter(self._special, cuts_text=cuts_text, chunk_characters=1),
            )

    def _trials(self) -> Iterator[str]:
        yield from _TRIALS
        for special in list(self._special)[:8]:
            yield f"{special}{_TRIALS[0]}{special}\n{_TRIALS[1]}{special}{special}{_TRIALS[3]}"

    def _holds(self, cutter: Cutter, text: str) -> bool:
        cut = b"".join(piece.lead + self.ids(piece.text) for piece in cutter.pieces(text))
        return cut == self.ids(text)


def special_ids(tokenizer: Tokenizer) -> dict[str, bytes]:
    """Added tokens that are borders whatever stands beside them."""
    return {
        token.content: _bytes([number])
        for number, token in tokenizer.get_added_tokens_decoder().items()
        if token.content and not (token.lstrip or token.rstrip or token.single_word)
        if not token.normalized
    }


def _bytes(ids: list[int]) -> bytes:
    return np.array(ids, dtype="<u4").tobytes()


def tokenizer_of(files: TokenizerFiles, *, now: Callable[[str], str]) -> FileTokenizer:
    """Make a tokenizer; `now` formats the present time. Raises TokenizerFilesError."""
    try:
        settings = msgspec.json.decode(files.settings or b"{}", type=dict[str, Any])
        default, for_tools = _templates(files, settings)
        return FileTokenizer(
            Tokenizer.from_buffer(files.tokenizer),
            chat_template=default,
            tool_template=for_tools,
            special_tokens=_special_tokens(settings),
            now=now,
        )
    except TokenizerFilesError:
        raise
    except TemplateFileError as error:
        raise TokenizerFilesError(str(error)) from error
    except Exception as error:  # the library has no exceptions of its own
        raise TokenizerFilesError(f"The tokenizer cannot be read: {error}.") from error


def _templates(files: TokenizerFiles, settings: dict[str, Any]) -> tuple[str | None, str | None]:
    """The template, and the one for conversations with tools where it differs."""
    if files.template is not None:
        return files.template.decode(), None
    given = settings.get("chat_template")
    if isinstance(given, list):
        named = {entry["name"]: entry["template"] for entry in given}
        return named.get("default"), named.get("tool_use")
    return given, None


def _special_tokens(settings: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name in _NAMED:
        value = settings.get(name)
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            found[name] = text
    return found
