"""What an engine says about itself, after the engine plugin has read its metrics page."""

from dataclasses import dataclass

from routing.core.adapters import Adapters


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSignals:
    """One reading. `None` is unknown, never zero; sums cover all data-parallel ranks."""

    running: int | None = None
    waiting: int | None = None
    waiting_tokens: int | None = None
    """Uncached prompt tokens of the waiting requests."""
    kv_usage: float | None = None
    """Share of KV blocks in use, 0 to 1."""
    kv_capacity_tokens: int | None = None
    block_size_tokens: int | None = None
    prefix_queries_total: float | None = None
    prefix_hits_total: float | None = None
    prompt_tokens_total: float | None = None
    generation_tokens_total: float | None = None
    process_start: float | None = None
    """Unix time at which the engine started; a change means an empty cache."""
    adapters: Adapters | None = None
    """Adapters in use; those that are loaded and idle are not among them."""
