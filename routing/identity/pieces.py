"""Cutting a rendered prompt where no token can reach across, so that each piece is tokenised once.

Special tokens are hard borders in every tokenizer. Long text between them is cut further, before
the space of a next word: pre-tokenizers of the GPT, Llama 3 and Qwen families put that space into
the next word's token. Whether a tokenizer holds to this is tried when it is loaded. Cuts depend on
what comes before them only: prompts with a common beginning have common pieces.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

CHUNK_CHARACTERS = 2048
"""Least length of a piece that is not the last of its text."""
_WORD_BORDER = re.compile(r"(?<=[^\W\d_])(?= [^\W\d_])")
"""Between a letter and a space that a letter follows."""
_MOST_MISSES = 64


class Piece(msgspec.Struct, frozen=True, gc=False):
    """Token ids that are known, and a text that follows them."""

    lead: bytes
    """Four little-endian bytes per id."""
    text: str


class Cutter:
    """Cuts prompts for one tokenizer. `special` are texts of special tokens with their ids."""

    def __init__(
        self,
        special: Mapping[str, bytes],
        *,
        cuts_text: bool = True,
        chunk_characters: int = CHUNK_CHARACTERS,
    ) -> None:
        self._special = dict(special)
        self._cuts_text = cuts_text
        self._chunk = chunk_characters
        longest_first = sorted(map(re.escape, special), key=len, reverse=True)
        self._border = re.compile("|".join(longest_first)) if special else None
        shared = _common_beginning(list(special))
        self._mark, self._mark_at = shared[-1:], len(shared) - 1

    def pieces(self, text: str) -> list[Piece]:
        """The pieces of a rendered prompt, in order."""
        found: list[str | bytes] = []
        behind = 0
        for start, end in self._borders(text):
            found.append(text[behind:start])
            found.append(self._special[text[start:end]])
            behind = end
        found.append(text[behind:])
        return self.of_parts(found)

    def _borders(self, text: str) -> Iterator[tuple[int, int]]:
        """Where special tokens begin and end.

        Looking for one character that all of them share is ten times as fast as looking for them,
        unless a text is full of it.
        """
        border, mark = self._border, self._mark
        if border is None:
            return
        behind = misses = 0
        at = text.find(mark) if mark else -1
        while at >= 0 and misses < _MOST_MISSES:
            match = border.match(text, max(behind, at - self._mark_at))
            if match:
                behind = match.end()
                yield match.span()
            else:
                misses += 1
            at = text.find(mark, max(behind, at + 1))
        if at >= 0 or not mark:
            for found in border.finditer(text, behind):
                yield found.span()

    def of_parts(self, parts: Iterable[str | bytes]) -> list[Piece]:
        """Pieces of texts and known ids (bytes) that are separated already."""
        found: list[Piece] = []
        lead = b""
        for part in parts:
            if isinstance(part, bytes):
                lead += part
            elif part:
                for chunk in self.chunks(part):
                    found.append(Piece(lead, chunk))
                    lead = b""
        if lead:
            found.append(Piece(lead, ""))
        return found

    def chunks(self, text: str) -> list[str]:
        """A text in pieces of bounded size, where it has borders."""
        if not self._cuts_text or len(text) <= self._chunk:
            return [text]
        found, start = [], 0
        search = _WORD_BORDER.search
        while border := search(text, start + self._chunk):
            found.append(text[start : border.start()])
            start = border.start()
        found.append(text[start:])
        return found


def _common_beginning(texts: list[str]) -> str:
    shortest, longest = min(texts, default=""), max(texts, default="")
    length = 0
    while length < len(shortest) and shortest[length] == longest[length]:
        length += 1
    return shortest[:length]
