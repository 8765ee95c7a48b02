"""A stream that broke goes on at another endpoint, and its client sees one stream.

The rest is asked for with the prompt and the tokens so far: as token ids where prompt and answer
came with them (pools whose prompts are identified by tokens ask for them), else as text: a chat
with an open last message of the assistant, a completion with a longer prompt. With ids the
rest is exactly what the same engine would have written; with text it is, unless the tokenizer cuts
the text differently.

What the client sees of it: `id` and `created` stay those of the first event, `usage` counts the
prompt once and the output whole, and the event with the `finish_reason` has a member
`"consort": {"continued": 1, "token_exact": false}`.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from routing.engines.base import Members, append_member, join_members, members_of, raw
from routing.pool.retries import MOST_BREAKS
from routing.servers.attempt import Attempt
from routing.servers.calls import Call
from routing.servers.transcript import Transcript, event_data

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"

_ONE_ANSWER_ONLY = ("best_of", "use_beam_search", "echo", "suffix")
_GRAMMARS = ("structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar")
"""An engine would begin a grammar anew in the middle of the answer."""
_CHAT_ONLY = (
    "messages",
    "max_completion_tokens",
    "add_generation_prompt",
    "continue_final_message",
    "chat_template",
    "chat_template_kwargs",
    "reasoning_effort",
    "include_reasoning",
    "documents",
)
_IDS = re.compile(rb'token_ids":\s*\[[^\]]*\]')
DONE = b"data: [DONE]\n\n"


@dataclass(slots=True)
class Story:
    """One answer over all attempts at it."""

    call: Call
    """As the client made it."""
    members: Members
    wants_ids: bool
    transcript: Transcript = field(default_factory=Transcript)
    pending: Attempt | None = None
    """A broken attempt whose account waits for whether another one goes on."""
    breaks: int = 0
    carried: int = 0
    """Tokens that the client had when the attempt under way began."""
    began_at: float | None = None
    """Monotonic time of the answer's first token."""
    is_exact: bool = True
    _is_translated: bool = False
    """A chat goes on as a completion of token ids."""

    @classmethod
    def of(cls, call: Call) -> "Story | None":
        """The story of a call, if its stream may go on when it breaks."""
        parsed, path = call.request.parsed, call.request.path
        if not parsed.stream or parsed.n != 1 or path not in (CHAT, COMPLETION):
            return None
        members = members_of(call.body)
        if any(_is_set(members, name) for name in (*_ONE_ANSWER_ONLY, *_GRAMMARS)):
            return None
        if _is_set(members, "response_format") and b'"text"' not in bytes(
            members["response_format"]
        ):
            return None
        if path == COMPLETION and _is_set(members, "logprobs"):
            return None
        mode = call.pool.document.prompt_identity.mode
        return cls(call, members, wants_ids=mode != "bytes" and not _is_set(members, "stop"))

    @property
    def is_begun(self) -> bool:
        """The client has the begin of an answer from an earlier attempt."""
        return self.breaks > 0

    def asked(self, body: bytes) -> bytes:
        """The body to send: token ids are asked for where they help."""
        if not self.wants_ids or b'"return_token_ids"' in body:
            return body
        return append_member(body, "return_token_ids", b"true")

    def told(self, events: bytes) -> bytes:
        """Note whole events of the attempt under way and return them as the client sees them."""
        if self.breaks:
            events = self._spliced(events)
        self.transcript.add(events)
        if self.wants_ids and not _is_set(self.members, "return_token_ids"):
            events = _IDS.sub(b'token_ids":null', events)
        return events

    def broke(self, attempt: Attempt) -> Call | None:
        """Keep a broken attempt and return the call for the rest; `None` if it cannot go on."""
        transcript = self.transcript
        transcript.read()
        attempt.spoken = transcript.tokens - self.carried
        if self.breaks >= MOST_BREAKS or not transcript.can_go_on or self.closing() is not None:
            return None
        call = self._rest()
        if call is None:
            return None
        self.pending, self.carried = attempt, transcript.tokens
        self.began_at = self.began_at or attempt.first_at
        self.breaks += 1
        return call

    def closing(self) -> bytes | None:
        """What ends the stream when the answer itself was whole; `None` when some is to come."""
        transcript, most = self.transcript, self.call.request.parsed.max_tokens
        if transcript.is_done:
            return b""
        if transcript.finish_reason is not None:
            return DONE
        if most is not None and transcript.tokens >= most:
            return self._last_event("length") + DONE
        return None

    def _last_event(self, reason: str) -> bytes:
        identity, created = self.transcript.head
        is_chat = self.call.request.path == CHAT
        said: dict[str, Any] = {"delta": {}} if is_chat else {"text": ""}
        choice = {"index": 0, "finish_reason": reason} | said
        event = {
            "id": identity,
            "object": "chat.completion.chunk" if is_chat else "text_completion",
            "created": created,
            "model": self.call.request.asked_model or self.call.request.model,
            "choices": [choice],
        }
        return b"data: %b\n\n" % msgspec.json.encode(event)

    # The rest of the answer, as a call.

    def _rest(self) -> Call | None:
        transcript, request = self.transcript, self.call.request
        path, members = self._rest_members()
        if members is None:
            return None
        came = transcript.tokens
        _reduce(members, "max_tokens", came, least=1)
        _reduce(members, "max_completion_tokens", came, least=1)
        _reduce(members, "min_tokens", came, least=0)
        most = request.parsed.max_tokens
        parsed = msgspec.structs.replace(
            request.parsed,
            prompt_tokens=request.parsed.prompt_tokens + came,
            max_tokens=None if most is None else most - came,
        )
        return msgspec.structs.replace(
            self.call,
            target=path,
            request=msgspec.structs.replace(request, path=path, parsed=parsed),
            body=join_members(members),
        )

    def _rest_members(self) -> tuple[str, Members | None]:
        """Path and body; the body is `None` where neither ids nor text say all that was written."""
        transcript, path = self.transcript, self.call.request.path
        members, ids = dict(self.members), transcript.ids
        if not transcript.tokens:
            return path, members
        if ids is not None and self._ids_say_all():
            self._is_translated = path == CHAT
            return COMPLETION, self._completion_of(members, ids)
        self.is_exact = self._is_translated = False
        if transcript.has_reasoning or not transcript.text:
            return path, None
        if path == CHAT:
            return path, _longer_chat(members, transcript.text)
        return path, _longer_prompt(members, transcript.text)

    def _ids_say_all(self) -> bool:
        """A tool call is only found in a chat's answer, log probabilities have another form."""
        return self.call.request.path == COMPLETION or not (
            _is_set(self.members, "tools") or _is_set(self.members, "logprobs")
        )

    def _completion_of(self, members: Members, ids: list[int]) -> Members:
        members["prompt"] = raw(ids)
        if self.call.request.path == COMPLETION:
            return members
        asked = self.call.request.parsed.max_tokens
        model = self.call.pool.models[self.call.request.model]
        if asked is None:
            # Without a number a completion ends early, a chat at the end of the context.
            asked = model.max_model_len - len(ids) + self.transcript.tokens
        members = {name: value for name, value in members.items() if name not in _CHAT_ONLY}
        return members | {"max_tokens": raw(asked)}

    # Events of the rest, as if the first engine had written them.

    def _spliced(self, events: bytes) -> bytes:
        parts = []
        for data in event_data(events):
            if data == b"[DONE]":
                parts.append(DONE)
                continue
            event = self._event(msgspec.json.decode(data))
            if event is not None:
                parts.append(b"data: %b\n\n" % msgspec.json.encode(event))
        return b"".join(parts)

    def _event(self, event: dict[str, Any]) -> dict[str, Any] | None:
        identity, created = self.transcript.head
        event |= {"id": identity, "created": created}
        if self._is_translated:
            event["object"] = "chat.completion.chunk"
        if event.get("prompt_token_ids"):
            event["prompt_token_ids"] = None
        choices = [self._choice(choice) for choice in event.get("choices", [])]
        if choices and all(choice is None for choice in choices):
            return None
        event["choices"] = kept = [choice for choice in choices if choice is not None]
        if any(choice.get("finish_reason") for choice in kept):
            event["consort"] = {"continued": self.breaks, "token_exact": self.is_exact}
        if isinstance(event.get("usage"), dict):
            event["usage"] = whole_usage(event["usage"], carried=self.carried)
        return event

    def _choice(self, choice: dict[str, Any]) -> dict[str, Any] | None:
        """`None` for the opening of a chat, which the client has had."""
        if choice.get("prompt_token_ids"):
            # They are those of the longer prompt.
            choice["prompt_token_ids"] = None
        if self._is_translated:
            text = choice.pop("text", "")
            choice = {"index": 0, "delta": {"content": text}} | choice
        delta = choice.get("delta")
        if isinstance(delta, dict) and delta.pop("role", None) is not None:
            is_opening = not delta.get("content") and not choice.get("finish_reason")
            return None if is_opening else choice
        return choice


def whole_usage(usage: dict[str, Any], *, carried: int) -> dict[str, Any]:
    """Counts of the last part turned into those of the whole: `carried` tokens were output."""
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    changed = dict(usage)
    if isinstance(prompt, int):
        changed["prompt_tokens"] = max(0, prompt - carried)
    if isinstance(completion, int):
        changed["completion_tokens"] = completion + carried
    details = usage.get("prompt_tokens_details")
    if isinstance(details, dict) and isinstance(details.get("cached_tokens"), int):
        cached = min(details["cached_tokens"], changed.get("prompt_tokens", 0))
        changed["prompt_tokens_details"] = details | {"cached_tokens": cached}
    return changed


def _is_set(members: Members, name: str) -> bool:
    return bytes(members.get(name, b"null")) not in (b"null", b"false", b"[]", b'""')


def _reduce(members: Members, name: str, came: int, *, least: int) -> None:
    if _is_set(members, name):
        members[name] = raw(max(least, int(msgspec.json.decode(members[name])) - came))


def _longer_chat(members: Members, text: str) -> Members | None:
    """The chat with an open last message of the assistant."""
    messages = msgspec.json.decode(members["messages"], type=list[msgspec.Raw])
    if _is_set(members, "continue_final_message"):
        last = msgspec.json.decode(messages[-1])
        if not isinstance(last.get("content"), str):
            return None
        messages[-1] = raw(last | {"content": last["content"] + text})
    else:
        messages.append(raw({"role": "assistant", "content": text}))
    return members | {
        "messages": raw(messages),
        "add_generation_prompt": raw(value=False),
        "continue_final_message": raw(value=True),
    }


def _longer_prompt(members: Members, text: str) -> Members | None:
    """The completion with a longer prompt; one of ids cannot take text."""
    prompt = msgspec.json.decode(members["prompt"])
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        return None
    return members | {"prompt": raw(prompt + text)}
