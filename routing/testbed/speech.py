"""What a client sees of a sequence: words up to a stop string, or the call of a tool.

Answers of the simulated model follow from the prompt, so where a stop string will stand is known
before the first token.
"""

from routing.testbed import tokens as tk
from routing.testbed.api_requests import Prompt
from routing.testbed.sequence import Sequence
from routing.testbed.tools import ToolCall

SEARCHED_TOKENS = 16_384
"""A stop string is looked for in so much of an answer."""


class Speech:
    """One sequence. Making it tells the sequence when to end."""

    def __init__(self, prompt: Prompt, sequence: Sequence) -> None:
        self._sequence = sequence
        self._told = 0
        """Tokens that were taken with `news`."""
        self._cut: int | None = None
        self._stop: str | None = None
        self.call: ToolCall | None = prompt.call
        if self.call is not None:
            sequence.end_after(-(-len(self.call.arguments) // tk.PIECE_BYTES))
        elif prompt.stops:
            self._look_for(prompt.stops)

    @property
    def finish_reason(self) -> str | None:
        """OpenAI's word for the end; `None` before it."""
        reason = self._sequence.finish_reason
        return "tool_calls" if self.call is not None and reason == "stop" else reason

    @property
    def stop_reason(self) -> str | None:
        """The stop string that ended the answer."""
        return self._stop if self._sequence.finish_reason == "stop" else None

    def news(self) -> tuple[str, list[int]]:
        """Visible text and token ids since the last time."""
        sequence, begin = self._sequence, self._told
        self._told = sequence.output
        first = sequence.prompt_tokens
        ids = sequence.tokens[first + begin : first + sequence.output].tolist()
        start, end = begin * tk.PIECE_BYTES, sequence.output * tk.PIECE_BYTES
        if self.call is not None:
            return self.call.arguments[start:end], ids
        text = tk.detokenize(ids)
        return (text if self._cut is None else text[: max(0, self._cut - start)]), ids

    def _look_for(self, stops: tuple[str, ...]) -> None:
        sequence, text = self._sequence, ""
        longest = max(map(len, stops))
        for count in range(1, min(sequence.stop_at, SEARCHED_TOKENS) + 1):
            piece = tk.answer_piece(sequence.prompt_key, sequence.spoken + count - 1)
            text += tk.PIECES[piece].decode()
            if count < sequence.min_output:
                continue
            begin = max(0, len(text) - longest - tk.PIECE_BYTES)
            found = [(at, stop) for stop in stops if (at := text.find(stop, begin)) >= 0]
            if found:
                self._cut, self._stop = min(found)
                sequence.end_after(count)
                return
