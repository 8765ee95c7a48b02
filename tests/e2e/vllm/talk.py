"""Requests of several kinds whose prompts share beginnings, the same in each run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tests.e2e.vllm.engines import ADAPTERS, MODEL

CHAT, COMPLETION, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
KINDS = ("plain", "adapter", "salted", "conversation", "streamed", "text", "ids", "responses")
SALTS = ("north", "south")
BOOKS = 10
SHORTEST_BOOK, LONGEST_BOOK = 40, 420
"""Words; a word is about two tokens of the tiny tokenizer."""
LONGEST_CONVERSATION = 6
IDS = (300, 4000)
"""Token ids of ordinary text."""
T = TypeVar("T")
_SYLLABLES = ("def", "ret", "urn", "im", "port", "class", "val", "ue", "self", "name", "path", "on")


@dataclass(frozen=True, kw_only=True)
class Wish:
    """One request."""

    kind: str
    path: str
    body: dict[str, Any]


class Talk:
    """Makes requests; `heard` continues conversations."""

    def __init__(self, seed: int) -> None:
        self._luck = np.random.default_rng(seed)
        step = (LONGEST_BOOK - SHORTEST_BOOK) // (BOOKS - 1)
        self._books = [self._text(SHORTEST_BOOK + step * number) for number in range(BOOKS)]
        self._shared = self._luck.integers(*IDS, size=(4, 512))
        self._conversation: list[dict[str, str]] = []

    def next(self) -> Wish:
        """The next request, of a kind by chance."""
        kind = self._one_of(KINDS)
        body: dict[str, Any] = {
            "model": MODEL,
            "temperature": 0,
            "max_tokens": self._one_of((1, 6, 40)),
            "ignore_eos": True,
        }
        match kind:
            case "text":
                text = f"{self._one_of(self._books)} {self._text(12)}"
                return Wish(kind=kind, path=COMPLETION, body=body | {"prompt": text})
            case "ids":
                return Wish(kind=kind, path=COMPLETION, body=body | {"prompt": self._ids()})
            case "responses":
                body = {"model": MODEL, "temperature": 0, "max_output_tokens": 6}
                body |= {"instructions": self._one_of(self._books), "input": self._text(12)}
                return Wish(kind=kind, path=RESPONSES, body=body)
            case "adapter":
                body["model"] = self._one_of(ADAPTERS)
            case "salted":
                body["cache_salt"] = self._one_of(SALTS)
            case "streamed":
                body |= {"stream": True, "stream_options": {"include_usage": True}}
        messages = self._next_turn() if kind == "conversation" else self._question()
        return Wish(kind=kind, path=CHAT, body=body | {"messages": messages})

    def heard(self, wish: Wish, text: str) -> None:
        """An answer came: a conversation goes on with it."""
        if wish.kind == "conversation":
            self._conversation = [*wish.body["messages"], {"role": "assistant", "content": text}]

    def book(self) -> str:
        """A long text that nobody has seen."""
        return self._text(LONGEST_BOOK)

    def _question(self) -> list[dict[str, str]]:
        return [
            {"role": "system", "content": self._one_of(self._books)},
            {"role": "user", "content": self._text(12)},
        ]

    def _next_turn(self) -> list[dict[str, str]]:
        if not self._conversation or len(self._conversation) > LONGEST_CONVERSATION:
            return self._question()
        return [*self._conversation, {"role": "user", "content": self._text(30)}]

    def _ids(self) -> list[int]:
        """Token ids: a beginning that others share, and an end of its own. Some lengths are whole
        blocks, where an engine computes the last one again."""
        begin = self._shared[self._luck.integers(len(self._shared))]
        length = self._one_of((64, 128, 256, 300, 512))
        own = self._luck.integers(*IDS, size=self._one_of((0, 0, 32, 45)))
        return [int(token) for token in (*begin[:length], *own)]

    def _text(self, words: int) -> str:
        pairs = self._luck.choice(_SYLLABLES, size=(words, 2))
        return " ".join(f"{first}{second}" for first, second in pairs)

    def _one_of(self, choices: Sequence[T]) -> T:
        return choices[self._luck.integers(len(choices))]
