"""Counters that only grow until their process restarts, and what they grew by."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Totals of one page since the process started; None is unknown, never 0."""

    prompt_tokens: int | None = None
    prompt_computed_tokens: int | None = None
    prompt_cached_tokens: int | None = None
    prompt_transferred_tokens: int | None = None
    """KV that came from a prefill engine; part of `prompt_tokens`, not a prompt again."""
    generation_tokens: int | None = None
    prefix_queries: int | None = None
    prefix_hits: int | None = None
    prefill_seconds: float | None = None
    decode_seconds: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        """Totals by name, as they are stored."""
        return asdict(self)


Growth = dict[str, float | None]
"""What each counter grew by; None where nobody knows."""


def growth(
    before: "dict[str, float | None] | None",
    after: "dict[str, float | None]",
    *,
    restarted: bool,
    from_start: bool,
) -> Growth:
    """What counters grew by between two readings; never negative.

    A counter below its last value, or a restarted process, began again at 0, so it grew by what it
    shows. Without an earlier reading everything counts if `from_start`, else nothing does: a
    stranger's total is not ours.
    """
    if before is None:
        return {
            name: (None if value is None else value if from_start else 0)
            for name, value in after.items()
        }
    return {
        name: _grown(None if restarted else before.get(name), value)
        for name, value in after.items()
    }


def _grown(before: float | None, after: float | None) -> float | None:
    if after is None:
        return None
    if before is None or after < before:
        return after
    return after - before


def was_restarted(before: float | None, after: float | None) -> bool:
    """True if the process start moved by more than a second; unknown starts tell nothing."""
    return before is not None and after is not None and abs(after - before) > 1.0
