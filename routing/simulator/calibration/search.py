"""Coordinate descent over factors: few, slow, noisy evaluations; no gradient, no chance."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Name = TypeVar("Name", bound=str)

STEPS = (0.3, 0.15, 0.07)
"""Relative changes that are tried, coarse to fine."""


def descend(
    loss: Callable[[Mapping[Name, float]], float],
    names: Sequence[Name],
    *,
    steps: Sequence[float] = STEPS,
    passes: int = 2,
) -> tuple[dict[Name, float], float]:
    """Factors, all 1 at the start, and their loss. Deterministic when `loss` is.

    Each factor in turn is raised, or else lowered, by a step as long as that helps; a pass without
    improvement, or `passes` of them, go on to the next finer step.
    """
    best: dict[Name, float] = dict.fromkeys(names, 1.0)
    lowest = loss(best)
    for step in steps:
        for _ in range(passes):
            before = lowest
            for name in names:
                best, lowest = _along(loss, name, best, lowest, step)
            if lowest >= before:
                break
    return best, lowest


def _along(
    loss: Callable[[Mapping[Name, float]], float],
    name: Name,
    best: dict[Name, float],
    lowest: float,
    step: float,
) -> tuple[dict[Name, float], float]:
    for factor in (1 + step, 1 / (1 + step)):
        has_moved = False
        while True:
            tried = {**best, name: best[name] * factor}
            found = loss(tried)
            if found >= lowest:
                break
            best, lowest, has_moved = tried, found, True
        if has_moved:
            break
    return best, lowest
