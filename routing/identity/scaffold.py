"""What an engine writes around messages, learned from its answers, where no files are at hand.

The engine is asked for the tokens of conversations of marked words. What stands between the words
is what its chat template puts there, and each text is tokenised by itself. That is exact as long as
the template looks at roles only and a text keeps its tokens in its place; both are tried with
further conversations, here and at every check. What needs more, such as tools, is not plain.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from routing.core.prompt import TOKEN_BYTES
from routing.identity.conversation import Conversation, NotPlainError
from routing.identity.pieces import Cutter, Piece

_WORDS = ("zebra", "quartz", "violin", "pumpkin", "harbor", "lantern")
_ROLES = (
    ("system", "user", "assistant", "user"),
    ("user", "assistant", "user", "assistant", "user"),
)
_EDGE = "zebra \n"
_TRIAL = (
    "The quick brown fox jumps over the lazy dog, isn't it? 12345 times 3.14 is a number and so "
    "are others.\n\n  def main(argv):\n    return argv  # done\n 서울은 대한민국의 수도 이다 크다."
)
_TRIAL_CHARACTERS = 24
PROBE = (
    ("system", "You answer in one word."),
    ("user", "Which letter follows A, and which follows Y?\nThink first."),
    ("assistant", "B and Z, dann ist Schluß; 끝."),
    ("user", "And 3 + 4?"),
)
"""A fixed conversation on which engines and this router must agree."""


class ScaffoldError(Exception):
    """An engine's answers do not fit together; the message says how."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is asked the tokens of: a conversation, or a text."""

    turns: tuple[tuple[str, str], ...] = ()
    """Role and content of each message."""
    prompt: str | None = None
    is_framed: bool = False
    """The engine adds what it adds to a plain prompt."""

    def body(self, model: str) -> bytes:
        """The body of vLLM's `/tokenize`."""
        fields: dict[str, Any] = {"model": model}
        if self.turns:
            messages = [{"role": role, "content": content} for role, content in self.turns]
            fields |= {"messages": messages, "add_generation_prompt": True}
        else:
            fields |= {"prompt": self.prompt, "add_special_tokens": self.is_framed}
        return msgspec.json.encode(fields)


def _marked(roles: Sequence[str]) -> Question:
    return Question(turns=tuple(zip(roles, _WORDS, strict=False)))


_EDGED = Question(turns=(("user", _EDGE),))


def questions() -> tuple[Question, ...]:
    """What is to be asked, once; `learn` takes the answers in the same order."""
    chunks = _trial_cutter().chunks(_TRIAL)
    return (
        *(Question(prompt=word) for word in _WORDS),
        *map(_marked, _ROLES),
        Question(prompt=_EDGE),
        _EDGED,
        Question(prompt=_WORDS[0], is_framed=True),
        Question(prompt=_TRIAL),
        *(Question(prompt=chunk) for chunk in chunks),
    )


def _trial_cutter() -> Cutter:
    return Cutter({}, chunk_characters=_TRIAL_CHARACTERS)


class Scaffold:
    """Pieces of prompts for one engine, see the module."""

    def __init__(
        self,
        borders: dict[tuple[str, str], bytes],
        *,
        frame: tuple[bytes, bytes],
        trims: bool,
        cuts_text: bool,
    ) -> None:
        self._borders = borders
        self._frame = frame
        self._trims = trims
        self.cutter = Cutter({}, cuts_text=cuts_text)

    def of_conversation(self, conversation: Conversation) -> list[Piece]:
        """Pieces of a conversation of texts. Raises NotPlainError."""
        if conversation.tools or conversation.options or not conversation.is_open:
            raise NotPlainError("needs-the-template")
        parts: list[str | bytes] = []
        before = ""
        for message in conversation.messages:
            if message.keys() != _PLAIN_MEMBERS:
                raise NotPlainError("needs-the-template")
            parts += (self._border(before, message["role"]), self._content(message["content"]))
            before = message["role"]
        parts.append(self._border(before, ""))
        return self.cutter.of_parts(parts)

    def of_text(self, text: str) -> list[Piece]:
        """Pieces of a plain prompt."""
        before, behind = self._frame
        return self.cutter.of_parts((before, text, behind))

    def _border(self, before: str, role: str) -> bytes:
        found = self._borders.get((before, role))
        if found is None:
            raise NotPlainError("needs-the-template")
        return found

    def _content(self, content: str) -> str:
        if self._trims:
            content = content.strip()
        if not content or content[0].isspace():
            # Its tokens could reach into what stands before it.
            raise NotPlainError("needs-the-template")
        return content


_PLAIN_MEMBERS = {"role", "content"}


def learn(answers: Sequence[bytes]) -> Scaffold:
    """Make a scaffold of the answers to `questions`. Raises ScaffoldError."""
    asked = dict(zip(questions(), answers, strict=True))
    words = [asked[Question(prompt=word)] for word in _WORDS]
    borders: dict[tuple[str, str], bytes] = {}
    for roles in _ROLES:
        whole = asked[_marked(roles)]
        for border, ids in _between(whole, words, roles):
            if borders.setdefault(border, ids) != ids:
                raise ScaffoldError("The chat template looks at more than the roles.")
    return Scaffold(
        borders,
        frame=_frame_of(asked[Question(prompt=_WORDS[0], is_framed=True)], words[0]),
        trims=_is_trimming(asked, borders, words[0]),
        cuts_text=_is_cut(asked),
    )


def _between(
    whole: bytes, words: Sequence[bytes], roles: Sequence[str]
) -> list[tuple[tuple[str, str], bytes]]:
    found, start, before = [], 0, ""
    for role, word in zip(roles, words, strict=False):
        at = _find(whole, word, start)
        found.append(((before, role), whole[start:at]))
        start, before = at + len(word), role
    found.append(((before, ""), whole[start:]))
    return found


def _find(whole: bytes, part: bytes, start: int) -> int:
    """Where ids stand in others, at the border of an id; exactly once."""
    places = [
        at
        for at in range(start, len(whole) - len(part) + 1, TOKEN_BYTES)
        if whole.startswith(part, at)
    ]
    if len(places) != 1 or not part:
        raise ScaffoldError("A text has other tokens in a conversation than by itself.")
    return places[0]


def _frame_of(framed: bytes, word: bytes) -> tuple[bytes, bytes]:
    at = _find(framed, word, 0)
    return framed[:at], framed[at + len(word) :]


def _is_trimming(
    asked: dict[Question, bytes], borders: dict[tuple[str, str], bytes], word: bytes
) -> bool:
    """Whether spaces at the ends of a text are taken away."""
    whole = asked[_EDGED]
    head, foot = borders["", "user"], borders["user", ""]
    if whole == head + asked[Question(prompt=_EDGE)] + foot:
        return False
    if whole == head + word + foot:
        return True
    raise ScaffoldError("The chat template changes the spaces of a text.")


def _is_cut(asked: dict[Question, bytes]) -> bool:
    """Whether a text in pieces has the ids of the whole."""
    chunks = _trial_cutter().chunks(_TRIAL)
    return asked[Question(prompt=_TRIAL)] == b"".join(asked[Question(prompt=c)] for c in chunks)
