"""Answers that are more than plain words: several choices, stop strings, log-probabilities, calls.

Kept apart from `api_answers`, whose plain streams cost little because every chunk has one length.
"""

from collections.abc import Mapping
from typing import Any

from routing.testbed import logprobs
from routing.testbed.api_answers import Answer, AnswerStyle, sse, usage
from routing.testbed.api_requests import Prompt
from routing.testbed.sequence import Sequence
from routing.testbed.speech import Speech


def usage_of(sequences: list[Sequence], *, details: bool) -> dict[str, Any]:
    """Token counts of several answers to one prompt, which counts once."""
    counts = usage(sequences[0], details=details)
    counts["completion_tokens"] = sum(sequence.output for sequence in sequences)
    counts["total_tokens"] = counts["prompt_tokens"] + counts["completion_tokens"]
    return counts


class RichAnswer(Answer):
    """One choice."""

    def __init__(
        self, prompt: Prompt, sequence: Sequence, style: AnswerStyle, *, created: int
    ) -> None:
        super().__init__(prompt, sequence, style, created=created)
        self._fast = False
        self._speech = Speech(prompt, sequence)
        self._has_named = False
        """The begin of a call, which names its function, was told."""
        self._characters = 0
        """Of the text that log-probabilities were told for."""

    def choice(self) -> dict[str, Any]:
        text, ids = self._speech.news()
        found = super().choice()
        found["finish_reason"] = self._speech.finish_reason
        found["stop_reason"] = self._speech.stop_reason
        found["logprobs"] = self._logprobs(text, ids)
        if not self._prompt.chat:
            return found | {"text": text}
        call = self._speech.call
        if call is None:
            found["message"]["content"] = text
        else:
            function = {"name": call.name, "arguments": text}
            found["message"] |= {"content": None, "tool_calls": [self._call(function)]}
        return found

    def _token_event(self) -> bytes:
        self._unsent.clear()
        text, ids = self._speech.news()
        choice = self._stream_choice(text, self._speech.finish_reason)
        choice["logprobs"] = self._logprobs(text, ids)
        if "stop_reason" in choice:
            choice["stop_reason"] = self._speech.stop_reason
        if self._speech.call is not None:
            choice["delta"] = {"tool_calls": [self._call_delta(text)]}
        if self._prompt.return_token_ids:
            choice["token_ids"] = ids
        return sse(self._with_usage(self._event([choice]), tokens=self._sequence.output))

    def _call_delta(self, text: str) -> dict[str, Any]:
        call, is_first = self._speech.call, not self._has_named
        self._has_named = True
        if call is None or not is_first:
            return {"index": 0, "function": {"arguments": text}}
        return {"index": 0} | self._call({"name": call.name, "arguments": text})

    def _call(self, function: Mapping[str, Any]) -> dict[str, Any]:
        name = f"chatcmpl-tool-{self._sequence.prompt_key:016x}"
        return {"id": name, "type": "function", "function": function}

    def _logprobs(self, text: str, ids: list[int]) -> dict[str, Any] | None:
        top = self._prompt.logprobs
        if top is None:
            return None
        if self._prompt.chat:
            return logprobs.of_chat(ids, top=top)
        offset, self._characters = self._characters, self._characters + len(text)
        return logprobs.of_completion(ids, top=top, offset=offset)


class Choices:
    """All choices of a request, written as one answer."""

    def __init__(
        self, prompt: Prompt, sequences: list[Sequence], style: AnswerStyle, *, created: int
    ) -> None:
        self._sequences = sequences
        self._untold = len(sequences)
        self._details = style.details
        self._answers = [
            RichAnswer(prompt, sequence, style, created=created) for sequence in sequences
        ]

    def token_chunk(self, sequence: Sequence) -> bytes:
        """See Answer.token_chunk; the end follows the last choice."""
        data = self._answers[sequence.choice].events()
        # Several may end in one step of the engine, and each is told by itself.
        self._untold -= sequence.finish_reason is not None
        if self._untold:
            return data
        return data + self._answers[0].closing(usage_of(self._sequences, details=self._details))

    def document(self, transfer: Mapping[str, Any] | None) -> dict[str, Any]:
        """The whole answer, once every choice has ended."""
        document = self._answers[0].document(transfer)
        document["choices"][1:] = [answer.choice() for answer in self._answers[1:]]
        document["usage"] |= usage_of(self._sequences, details=self._details)
        return document
