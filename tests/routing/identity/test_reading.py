"""Bodies of every API, read by a source of pieces."""

import json
from typing import Any

import numpy as np
import pytest

from routing.core.prompt import exact_root, token_block_keys
from routing.identity.chains import Chains
from routing.identity.reading import PromptReader, Reading
from tests.routing.identity.small_tokenizers import SYSTEM, byte_level, with_template

COMPLETIONS = "/v1/completions"


def reader() -> PromptReader:
    chains = Chains(block_tokens=16, cache_bytes=10**6, secret=1)
    return PromptReader(with_template(byte_level()), chains)


def read(path: str, *, tokenise: Any = None, adapter: str | None = None, **fields: Any) -> Reading:
    one = reader()
    body = json.dumps({"model": "m"} | fields).encode()
    ids = tokenise or with_template(byte_level()).ids
    return one.read(path, body, adapter=adapter, salt=None, tokenise=ids)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (COMPLETIONS, {"prompt": SYSTEM}),
        (COMPLETIONS, {"prompt": [SYSTEM]}),
        ("/v1/embeddings", {"input": SYSTEM}),
    ],
)
def test_a_plain_prompt_is_read_as_it_is(path: str, fields: dict[str, Any]) -> None:
    found = read(path, **fields)

    ids = np.array(byte_level().encode(SYSTEM).ids, dtype=np.uint32)
    expected = token_block_keys(ids, root=exact_root(None, None), block_tokens=16)
    assert found.prompt.block_keys.tolist() == expected.tolist()
    assert found.prompt.tokens == len(ids)
    assert found.missing == ()


def test_an_adapter_has_keys_of_its_own() -> None:
    base, lora = (read(COMPLETIONS, prompt=SYSTEM, adapter=name) for name in (None, "lora"))

    assert not set(base.prompt.block_keys.tolist()) & set(lora.prompt.block_keys.tolist())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"prompt": ["a", "b"]}, "prompt-several-texts"),
        ({"prompt": "a", "add_special_tokens": False}, "prompt-own-template"),
        ({"prompt": "a", "truncate_prompt_tokens": 3}, "prompt-own-template"),
        ({"prompt": "a", "truncate_prompt_tokens": "x"}, "prompt-unknown-shape"),
    ],
)
def test_a_prompt_that_is_not_plain_says_why(fields: dict[str, Any], reason: str) -> None:
    assert read(COMPLETIONS, **fields).prompt.degraded == reason


def test_what_is_not_known_is_named_for_those_who_ask_engines() -> None:
    found = read(COMPLETIONS, prompt=SYSTEM, tokenise=lambda text: None)

    assert found.prompt.degraded == "tokens-not-known-yet"
    assert "".join(found.missing) == SYSTEM
