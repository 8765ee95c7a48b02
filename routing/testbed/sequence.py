"""One request inside an engine: its tokens, its blocks and its times."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from routing.testbed import tokens as tk


class State(Enum):
    """Where a sequence is."""

    WAITING = auto()
    PULLING = auto()
    """Its blocks are allocated and its KV is on the way from another engine."""
    PREFILLING = auto()
    DECODING = auto()
    FINISHED = auto()


@dataclass(frozen=True, slots=True)
class RemoteKv:
    """Where the KV of a prompt lies: `kv_transfer_params` of a prefill answer."""

    engine_id: str
    request_id: str
    host: str
    port: int
    tokens: int


def _nobody(_: "Sequence") -> None:
    """The listener of a sequence whose client left."""


@dataclass(slots=True, eq=False)
class Sequence:
    """A prompt and its answer. Times are seconds on the clock of the caller, None until known."""

    id: str
    tokens: "array[int]"
    keys: "array[int]"
    """Chained keys of the whole blocks filled so far."""
    root: int
    salt: str | None
    max_output: int
    arrived: float
    min_output: int = 0
    ignore_eos: bool = False
    hold: bool = False
    """Keep the blocks for a decode engine after the end (`do_remote_decode`)."""
    remote: RemoteKv | None = None
    listener: Callable[["Sequence"], None] = _nobody

    prompt_tokens: int = field(init=False)
    prompt_key: int = field(init=False)
    stop_at: int = field(init=False)
    ends_by_itself: bool = field(init=False)
    state: State = State.WAITING
    blocks: list[int] = field(default_factory=list)
    registered: int = 0
    """Blocks that were offered to the prefix cache."""
    computed: int = 0
    """Tokens whose KV is in the blocks."""
    output: int = 0
    piece: int = 0
    """Index of the token that was emitted last, into tokens.PIECES."""
    local_hit: int = 0
    external: int = 0
    preempted: int = 0
    scheduled: float | None = None
    first: float | None = None
    last: float = 0.0
    finish_reason: str | None = None

    def __post_init__(self) -> None:
        self.prompt_tokens = len(self.tokens)
        self.prompt_key = tk.prompt_key(self.tokens)
        natural = max(tk.natural_length(self.prompt_key), self.min_output)
        self.ends_by_itself = not self.ignore_eos and natural < self.max_output
        self.stop_at = natural if self.ends_by_itself else self.max_output

    @property
    def cached(self) -> int:
        """Prompt tokens that were not computed here, as vLLM reports them in `usage`."""
        return self.local_hit + self.external

    def emit(self) -> None:
        """Append the next token of the answer."""
        piece = tk.answer_piece(self.prompt_key, self.output)
        self.piece = piece
        self.output += 1
        self.tokens.append(tk.PIECE_IDS[piece])

    def silence(self) -> None:
        """Nobody listens any more."""
        self.listener = _nobody
