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
    wait_seconds: float = 0.0
    """How long the other engine may still compute it; 0 when it said that it is done."""


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
    adapter: str | None = None
    """LoRA adapter that computes it."""
    choice: int = 0
    """Which of several answers to the same prompt it is; each has other words."""
    ignore_eos: bool = False
    hold: bool = False
    """Keep the blocks for a decode engine after the end (`do_remote_decode`)."""
    remote: RemoteKv | None = None
    listener: Callable[["Sequence"], None] = _nobody

    prompt_tokens: int = field(init=False)
    prompt_key: int = field(init=False)
    spoken: int = field(init=False)
    """Tokens at the end of the prompt that are the begin of the answer already."""
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
        self.prompt_key, self.spoken = tk.spoken_answer(self.tokens)
        if not self.ignore_eos and self.spoken >= tk.natural_length(self.prompt_key):
            # A whole answer and no begin of one.
            self.prompt_key, self.spoken = tk.prompt_key(self.tokens), 0
        self.prompt_key = tk.choice_key(self.prompt_key, self.choice)
        natural = max(tk.natural_length(self.prompt_key) - self.spoken, self.min_output)
        self.ends_by_itself = not self.ignore_eos and natural < self.max_output
        self.stop_at = natural if self.ends_by_itself else self.max_output

    @property
    def cached(self) -> int:
        """Prompt tokens that were not computed here, as vLLM reports them in `usage`."""
        return self.local_hit + self.external

    def end_after(self, tokens: int) -> None:
        """End by itself after so many tokens, unless it ends before anyhow."""
        if tokens <= self.stop_at:
            self.stop_at, self.ends_by_itself = tokens, True

    def emit(self) -> None:
        """Append the next token of the answer."""
        piece = tk.answer_piece(self.prompt_key, self.spoken + self.output)
        self.piece = piece
        self.output += 1
        self.tokens.append(tk.PIECE_IDS[piece])

    def silence(self) -> None:
        """Nobody listens any more."""
        self.listener = _nobody
