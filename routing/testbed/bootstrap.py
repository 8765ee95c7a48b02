"""SGLang's pairs between simulated engines: both legs at once, in a room drawn by the router.

The prefill engine computes the prompt and one token, keeps the blocks under the room's number and
answers when they were fetched, as SGLang does. The decode engine waits for the room, pulls and
answers. A room that nobody enters in time fails its request on either side.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from routing.testbed.api_requests import Prompt
from routing.testbed.driver import EngineDriver
from routing.testbed.errors import ApiError
from routing.testbed.http import STREAM_HEAD, Exchange
from routing.testbed.sequence import RemoteKv, Sequence
from routing.testbed.settings import Role


class Writer(Protocol):
    """Writes the answer of one API."""

    def token_chunk(self, sequence: Sequence) -> bytes:
        """The stream's bytes for the token that a sequence emitted last, the end with the last."""

    def document(self, transfer: Mapping[str, Any] | None) -> dict[str, Any]:
        """The whole answer, with the ticket of a prefill leg."""


class Rooms:
    """One engine's part in pairs; an engine of role `both` is in none."""

    def __init__(self, driver: EngineDriver, *, role: Role, hold_seconds: float) -> None:
        self._driver = driver
        self._role = role
        self._hold_seconds = hold_seconds

    def own_part(self, prompt: Prompt) -> Prompt:
        """What this engine does of a request: a prefill engine computes one token only."""
        if prompt.meeting is None or self._role != "prefill":
            return prompt
        return replace(prompt, max_tokens=1, min_tokens=0, choices=1)

    def enter(self, prompt: Prompt, sequence: Sequence) -> None:
        """Mark the sequence as the end of a pair that it is."""
        meeting = prompt.meeting
        if meeting is None:
            return
        if self._role == "prefill":
            sequence.hold = True
        elif self._role == "decode":
            sequence.remote = RemoteKv(
                engine_id="",
                request_id=meeting.name,
                host=meeting.host,
                port=meeting.port,
                tokens=sequence.prompt_tokens,
                wait_seconds=self._hold_seconds,
            )

    def prefill_listener(
        self, exchange: Exchange, prompt: Prompt, answer: Writer
    ) -> Callable[[Sequence], None] | None:
        """Who hears of a prompt computed for another engine; `None` where it is for this one."""
        meeting = prompt.meeting
        if meeting is None or self._role != "prefill":
            return None

        def finished(sequence: Sequence) -> None:
            if sequence.finish_reason is None:
                return
            data = answer.token_chunk(sequence) if prompt.stream else b""

            def gone(fetched: bool) -> None:  # noqa: FBT001 - the driver's callback
                if not fetched:
                    exchange.send_json(500, _not_fetched().body())
                elif prompt.stream:
                    exchange.write(STREAM_HEAD + data)
                    exchange.end()
                else:
                    exchange.send_json(200, answer.document(None))

            self._driver.hold(meeting.name, sequence, self._hold_seconds, gone)

        return finished

    def leave(self, prompt: Prompt) -> None:
        """The client left: nobody is to fetch the prompt any more."""
        if prompt.meeting is not None and self._role == "prefill":
            self._driver.drop(prompt.meeting.name)


def _not_fetched() -> ApiError:
    return ApiError(
        "KVTransferError: the decode engine did not come to the bootstrap room in time.",
        status=500,
        kind="InternalServerError",
        param=None,
    )
