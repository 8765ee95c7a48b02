"""What the sessions of the official clients have in common."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

from tests.e2e.envoy.stack import WAYS

ALL_WAYS = ("proxy", *WAYS)
HELLO = [{"role": "user", "content": "Which accelerators are there?"}]
PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)
"""One pixel."""
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
WEATHER: dict[str, Any] = {"name": "weather", "description": "The weather.", "parameters": SCHEMA}
ARGUMENTS = {"city": "the", "days": 1}
"""What a simulated engine calls the tool with."""

Client = TypeVar("Client")


@contextmanager
def one_for_each(
    make: Callable[[str], AbstractContextManager[Client]],
) -> Iterator[Callable[[str], Client]]:
    """A client for each address, made when it is needed first: each reads all root certificates."""
    with ExitStack() as opened:
        made: dict[str, Client] = {}

        def client_of(url: str) -> Client:
            if url not in made:
                made[url] = opened.enter_context(make(url))
            return made[url]

        yield client_of
