"""Request bodies for the comparison of routers: lines of `KEY<TAB>BODY`, as `loadgen.c` reads them.

64 conversations in 8 groups. A group shares a system prompt (a quarter of the body), a conversation
shares all but its last turn, which ends with sixteen `@` that `loadgen` replaces by a number, so
that no two requests are equal.
"""

import json
from pathlib import Path

import numpy as np

GROUPS, CONVERSATIONS, OUTPUT_TOKENS = 8, 64, 200
UNIQUE = "@" * 16
_LETTERS = np.frombuffer(b"etaoinshrdlucmfwypvbgkjqxz      ", dtype=np.uint8)


def write(path: Path, *, size: int, stream: bool, seed: int = 1) -> None:
    """Write the bodies of about `size` bytes each; streamed ones ask for paced events."""
    rng = np.random.default_rng(seed)
    room = size - 260
    shared, last = room // 4, min(120, room // 4)
    systems = [_text(rng, shared) for _ in range(GROUPS)]
    lines = []
    for number in range(CONVERSATIONS):
        turns = _text(rng, room - shared - last)
        third = len(turns) // 3
        body = {
            "model": "fake",
            "messages": [
                {"role": "system", "content": systems[number % GROUPS]},
                {"role": "user", "content": turns[:third]},
                {"role": "assistant", "content": turns[third : 2 * third]},
                {"role": "user", "content": f"{turns[2 * third :]} {_text(rng, last)} {UNIQUE}"},
            ],
            "max_tokens": OUTPUT_TOKENS,
            "temperature": 0,
            **({"stream": True} if stream else {}),
        }
        lines.append(f"conversation-{number}\t{json.dumps(body)}\n")
    path.write_text("".join(lines))


def _text(rng: np.random.Generator, size: int) -> str:
    return rng.choice(_LETTERS, size).tobytes().decode()
