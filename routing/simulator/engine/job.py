"""One request inside a replica."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

UNSHARED = 1 << 63
"""Keys of answers that nobody asks for again have this bit; those of prompts may have it, too: 64
bits of a hash and a counter do not meet in practice."""


class State(Enum):
    """Where a job is."""

    WAITING = auto()
    PULLING = auto()
    PREFILLING = auto()
    DECODING = auto()
    HELD = auto()
    """Finished; its blocks wait for a decode replica."""
    ENDED = auto()


def _nothing(now: float) -> None:
    pass


@dataclass(slots=True, eq=False, kw_only=True)
class Job:
    """What the caller fills in, and what the replica keeps. Times go to the callbacks."""

    number: int
    keys: list[int]
    """Of the prompt's whole blocks; the replica appends those of the answer."""
    prompt_tokens: int
    output_tokens: int
    on_first: Callable[[float], None] = _nothing
    """The first token is out; `cached` is known."""
    on_end: Callable[[float], None] = _nothing
    on_lost: Callable[[float], None] = _nothing
    """The replica died, or cannot hold it."""
    on_admitted: Callable[[float], None] | None = None
    """The prompt's KV comes from elsewhere: room for it is there, start the transfer; call
    `pulled` when it is over."""
    answer_keys: tuple[int, ...] = ()
    hold: bool = False
    """Keep the prompt's blocks after the end, until `release`."""

    state: State = State.WAITING
    cached: int = 0
    """Prompt tokens found at the first admission."""
    computed: int = 0
    """Tokens whose KV is in the blocks, while prefilling."""
    made: int = 0
    """Output tokens before the present stay in the batch."""
    joined_step: int = 0
    taken: list[int] = field(default_factory=list)
    """Keys of shared blocks that it uses."""
    offered: int = 0
    """Leading blocks that were offered to the cache."""
    private: int = 0
    preempted: int = 0
    admitted_at: float | None = None
    """When it first had a place in the batch."""
    silent_since: float = 0.0
    """When it left the batch by preemption."""

    prompt_blocks: int = field(init=False)

    def __post_init__(self) -> None:
        self.prompt_blocks = len(self.keys)

    @property
    def target(self) -> int:
        """Tokens to compute before the next one is out: after a preemption the answer's, too."""
        return self.prompt_tokens + self.made

    def keys_up_to(self, blocks: int) -> list[int]:
        """Keys of the leading whole blocks, the answer's included."""
        for position in range(len(self.keys), blocks):
            known = position - self.prompt_blocks
            if known < len(self.answer_keys):
                self.keys.append(self.answer_keys[known])
            else:
                self.keys.append(UNSHARED | self.number << 24 | position)
        return self.keys[:blocks]
