"""CPU time of reading a body: by bytes, and by token ids with a warm memory of pieces.

    python -m tests.benchmarks.bench_identity [--rounds 1000]

Bodies are chats: 1 kB, 30 kB in one message, and 28.8 kB (about 7,000 tokens of the small
tokenizer of the tests) as a shared system message and one of five questions. The median of process
CPU time per body is printed. "New text" is what a request pays for text that was never seen.
"""

import argparse
import json
import sys

import numpy as np

from routing.core.bodies.wire import Turns
from routing.core.document import PromptIdentity
from routing.core.openai import ExactPrompt, ExactReader, parse_request
from routing.identity.chains import Chains
from routing.identity.reading import PromptReader
from tests.benchmarks.bench_decide import median_us
from tests.routing.identity.small_tokenizers import TEXT, byte_level, with_template

CHAT = "/v1/chat/completions"
IDENTITY = PromptIdentity()


def prose(rng: np.random.Generator, size: int) -> str:
    """Words of the tests' text in random order."""
    words = TEXT.split(" ")
    return " ".join(rng.choice(words, size // 6))[:size]


def body(*contents: str) -> bytes:
    """A chat: system and user, or user alone."""
    roles = ("system", "user")[-len(contents) :]
    messages = [
        {"role": role, "content": content} for role, content in zip(roles, contents, strict=True)
    ]
    return json.dumps({"model": "m", "messages": messages}, ensure_ascii=False).encode()


def exact_reader() -> ExactReader:
    """A reader in mode `tokens`."""
    tokenizer = with_template(byte_level())
    chains = Chains(block_tokens=16, cache_bytes=2**26, secret=7)
    reader = PromptReader(tokenizer, chains)

    def read(path: str, raw: bytes, salt: str | None, turns: Turns | None) -> ExactPrompt:
        ids = tokenizer.ids
        return reader.read(path, raw, turns, adapter=None, salt=salt, tokenise=ids).prompt

    return read


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=1000)
    rounds = options.parse_args().rounds
    rng = np.random.default_rng(7)
    system = prose(rng, 24_000)
    shared = [body(system, prose(rng, 4_800)) for _ in range(5)]
    small, large = body(prose(rng, 900)), body(prose(rng, 30_000))
    exact = exact_reader()
    write = sys.stdout.write

    def by_bytes(raw: bytes) -> float:
        return median_us(lambda _: parse_request(CHAT, raw, identity=IDENTITY), rounds)

    def by_ids(turn: int) -> object:
        raw = shared[turn % len(shared)]
        return parse_request(CHAT, raw, identity=IDENTITY, exact=exact)

    write(f"bytes, 1 kB in one message          p50 {by_bytes(small):7.1f} us\n")
    write(f"bytes, 30 kB in one message         p50 {by_bytes(large):7.1f} us\n")
    write(f"bytes, 28.8 kB in two messages      p50 {by_bytes(shared[0]):7.1f} us\n")
    median_us(by_ids, len(shared))
    write(f"token ids, the same, warm           p50 {median_us(by_ids, rounds):7.1f} us\n")
    tokenizer = with_template(byte_level())
    texts = [prose(rng, 4_800) for _ in range(50)]
    cost = median_us(lambda turn: tokenizer.ids(texts[turn]), len(texts))
    write(f"new text, 4.8 kB                    p50 {cost:7.1f} us\n")


if __name__ == "__main__":
    main()
