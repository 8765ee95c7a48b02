"""A model's chat template, rendered as Hugging Face's library renders it.

Jinja in a sandbox without writes; `trim_blocks` and `lstrip_blocks` are on, `tojson` keeps
letters as they are, `strftime_now` is given by the caller, because time is no business of a pure
core. Templates are the operator's files; the messages in them are the client's.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from routing.identity.conversation import Conversation, NotPlainError

_PARTS = re.compile(r"for\s+\w+\s+in\s+\w+(?:\.content|\[['\"]content['\"]\])")
"""A template that walks over a content wants it in parts, as vLLM finds out too."""


_REFUSALS = (
    jinja2.TemplateError,
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    AttributeError,
    RecursionError,
)


class TemplateFileError(Exception):
    """A chat template that cannot be used; the message says why."""


class _Generation(Extension):
    """`{% generation %}` marks what a model wrote, for training; the text inside is kept."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The body of the block, without the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """One compiled template. `now` formats the present time (strftime)."""

    def __init__(
        self, source: str, *, special_tokens: Mapping[str, str], now: Callable[[str], str]
    ) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, "jinja2.ext.loopcontrols"],
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = now
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise TemplateFileError(f"The chat template cannot be read: {error}.") from error
        self._special_tokens = dict(special_tokens)
        self._wants_parts = bool(_PARTS.search(source))

    def render(self, conversation: Conversation) -> str:
        """The prompt as text. Raises NotPlainError when the template refuses the conversation."""
        messages = conversation.messages
        if self._wants_parts:
            messages = [_in_parts(message) for message in messages]
        variables = {
            "documents": None,
            **self._special_tokens,
            **conversation.options,
            "messages": messages,
            "tools": conversation.tools,
            "add_generation_prompt": conversation.is_open,
        }
        try:
            return self._template.render(variables)
        except _REFUSALS:
            # Engines answer such a request with an error of their own.
            raise NotPlainError("template-refused") from None


def _in_parts(message: dict[str, Any]) -> dict[str, Any]:
    return message | {"content": [{"type": "text", "text": message["content"]}]}


def _tojson(
    value: Any,
    *,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _refuse(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
