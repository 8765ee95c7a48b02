"""Round values for the axis of a chart."""

import math

LEAST_TOP = 1e-9
"""Of an axis; values below it are drawn as nothing, and no chart of ours has any."""


def ticks(top: float, *, most: int) -> list[float]:
    """Up to so many round values (1, 2 or 5 times a power of ten, and multiples) below the top.

    The top is at least LEAST_TOP.
    """
    power = 10.0 ** math.floor(math.log10(top / 2))
    step = next((many * power for many in (5, 2) if many * power <= top / 2), power)
    return [step * n for n in range(1, most + 1) if step * n < top * 0.95]
