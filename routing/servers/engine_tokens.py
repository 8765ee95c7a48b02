"""Asks engines for the tokens of a text or of a conversation, by vLLM's `/tokenize`."""

import msgspec
import numpy as np

from routing.identity.scaffold import Question
from routing.servers.documents import Endpoint, LoadedPool
from routing.servers.state import RouterState
from routing.servers.upstream import Collected, Deadlines, UpstreamError

ANSWER_BYTES = 64 * 1024 * 1024
ENDPOINTS_TRIED = 3
_DEADLINES = Deadlines(connect=1.0, first_byte=5.0, stall=5.0)


class NoTokensError(Exception):
    """No engine told the tokens; the message says why."""


class _Tokens(msgspec.Struct):
    tokens: list[int]


_TOKENS = msgspec.json.Decoder(_Tokens)


class EngineTokens:
    """The tokenizers of one pool's engines."""

    def __init__(self, state: RouterState, pool: LoadedPool) -> None:
        self._state = state
        self._pool = pool
        self._turn = 0

    def ready(self) -> list[Endpoint]:
        """Endpoints that may be asked."""
        endpoints = self._pool.endpoints.values()
        return [endpoint for endpoint in endpoints if endpoint.spec.state == "ready"]

    async def ids(self, question: Question) -> bytes:
        """Ids from any engine, four little-endian bytes each. Raises NoTokensError."""
        endpoints = self.ready()
        failure = NoTokensError("The pool has no endpoint that may be asked.")
        for _ in range(min(ENDPOINTS_TRIED, len(endpoints))):
            self._turn += 1
            try:
                return await self.ids_at(endpoints[self._turn % len(endpoints)], question)
            except NoTokensError as error:
                failure = error
        raise failure

    async def ids_at(self, endpoint: Endpoint, question: Question) -> bytes:
        """Ids from one engine. Raises NoTokensError."""
        answer = Collected(limit_bytes=ANSWER_BYTES)
        body = question.body(base_model(self._pool))
        name = endpoint.spec.id
        message = (
            b"POST /tokenize HTTP/1.1\r\nhost: %b\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%b" % (str(endpoint.origin).encode(), len(body), body)
        )
        try:
            await self._state.upstreams.run(endpoint.origin, message, answer, _DEADLINES)
            if answer.status != 200:
                raise NoTokensError(f"{name} answered {answer.status} to /tokenize.")
            tokens = _TOKENS.decode(answer.body).tokens
            return np.array(tokens, dtype="<u4").tobytes()
        except UpstreamError as error:
            raise NoTokensError(error.message) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
            raise NoTokensError(f"{name} told tokens that cannot be read: {error}.") from error


def base_model(pool: LoadedPool) -> str:
    """A model that every endpoint serves: adapters are loaded here and there."""
    models = pool.document.models
    return next((model.name for model in models if model.adapter_of is None), models[0].name)
