"""Embeddings: each input is a prompt of which nothing is decoded. The vectors are simulated.

They follow from the tokens alone and have length 1, so equal inputs are equal and others are not
near each other.
"""

import base64
import math
from array import array
from collections.abc import Callable, Mapping
from typing import Any

import xxhash

from routing.testbed import tokens as tk
from routing.testbed.api_requests import check_length, completion_tokens
from routing.testbed.driver import EngineDriver
from routing.testbed.errors import ApiError, number, text, type_error
from routing.testbed.http import Exchange
from routing.testbed.sequence import Sequence

DIMENSIONS = 256
MOST_DIMENSIONS = 4096
MOST_INPUTS = 2048
"""OpenAI's own bound of one request."""


class Embeddings:
    """The route of an engine."""

    def __init__(self, driver: EngineDriver, *, block_size: int, context_limit: int) -> None:
        self._driver = driver
        self._block_size = block_size
        self._context_limit = context_limit

    def answer(
        self, exchange: Exchange, body: Mapping[str, Any], model: str, adapter: str | None
    ) -> None:
        """Compute all inputs and answer. Raises ApiError."""
        inputs = _inputs(body)
        for tokens in inputs:
            check_length(len(tokens), self._context_limit)
        dimensions = _dimensions(body)
        encode = _encoder(body)
        salt = text(body, "cache_salt")
        sequences = [self._sequence(tokens, salt, adapter) for tokens in inputs]

        untold = len(sequences)

        def ended(_: Sequence) -> None:
            nonlocal untold
            untold -= 1
            if not untold:
                vectors = [encode(_vector(one.tokens, dimensions)) for one in sequences]
                exchange.send_json(200, self._document(model, vectors, sequences))

        def left() -> None:
            for sequence in sequences:
                if sequence.finish_reason is None:
                    self._driver.abort(sequence)

        exchange.on_abort = left
        for sequence in sequences:
            sequence.listener = ended
            self._driver.submit(sequence)

    def _sequence(self, tokens: "array[int]", salt: str | None, adapter: str | None) -> Sequence:
        root = tk.root_key(salt, adapter)
        return Sequence(
            id=f"embd-{xxhash.xxh3_64_hexdigest(tokens.tobytes())}",
            tokens=tokens,
            keys=tk.block_keys(tokens, self._block_size, root),
            root=root,
            salt=salt,
            adapter=adapter,
            max_output=0,
            arrived=self._driver.now,
        )

    def _document(
        self, model: str, vectors: list[Any], sequences: list[Sequence]
    ) -> dict[str, Any]:
        used = sum(sequence.prompt_tokens for sequence in sequences)
        return {
            "id": sequences[0].id,
            "object": "list",
            "created": int(self._driver.started_at),
            "model": model,
            "data": [
                {"index": index, "object": "embedding", "embedding": vector}
                for index, vector in enumerate(vectors)
            ],
            "usage": {
                "prompt_tokens": used,
                "total_tokens": used,
                "completion_tokens": 0,
                "prompt_tokens_details": None,
            },
        }


def _inputs(body: Mapping[str, Any]) -> list["array[int]"]:
    given = body.get("input")
    is_one = isinstance(given, str) or (
        isinstance(given, list) and bool(given) and isinstance(given[0], int)
    )
    inputs = [given] if is_one else given
    if not isinstance(inputs, list) or not 0 < len(inputs) <= MOST_INPUTS:
        raise ApiError(f"input holds 1 to {MOST_INPUTS} texts or prompts.", param="input")
    return [completion_tokens({"prompt": [one]}) for one in inputs]


def _dimensions(body: Mapping[str, Any]) -> int:
    asked = number(body, "dimensions")
    if asked is not None and not 1 <= asked <= MOST_DIMENSIONS:
        message = f"dimensions is {asked}; it must be 1 to {MOST_DIMENSIONS}."
        raise ApiError(message, param="dimensions")
    return asked or DIMENSIONS


def _encoder(body: Mapping[str, Any]) -> Callable[[list[float]], Any]:
    form = text(body, "encoding_format") or "float"
    if form == "float":
        return list
    if form == "base64":
        return lambda vector: base64.b64encode(array("f", vector).tobytes()).decode()
    raise type_error("enum", "body.encoding_format", "Input should be float or base64", form)


def _vector(tokens: "array[int]", dimensions: int) -> list[float]:
    raw = tokens.tobytes()
    key = xxhash.xxh3_64_intdigest(raw)
    words = (
        xxhash.xxh3_64_intdigest(place.to_bytes(4, "little"), key) for place in range(dimensions)
    )
    values = [word / 2**63 - 1.0 for word in words]
    length = math.hypot(*values) or 1.0
    return [value / length for value in values]
