"""Trust per endpoint: how far predicted hits were confirmed by the engine, 0 to 1, weighted by age.

It multiplies the cache credit. Being wrong in the other direction (more cached than expected) costs
nothing, so it does not raise trust above 1.
"""

from routing.core.table import EndpointTable

STEP = 0.1
DOUBTED = 0.3
FLOOR = 0.05
"""Below this an endpoint could not earn trust back: nothing would be sent there for its cache."""


def observe_hit(
    table: EndpointTable, row: int, *, predicted_tokens: int, cached_tokens: int | None
) -> None:
    """Move trust towards the confirmed share; no prediction or no report says nothing."""
    if row < 0 or cached_tokens is None or predicted_tokens <= 0:
        return
    confirmed = min(1.0, cached_tokens / predicted_tokens)
    known = float(table.trust[row])
    table.trust[row] = max(FLOOR, known + STEP * (confirmed - known))


def distrust(table: EndpointTable, row: int) -> None:
    """There is a reason to doubt predictions; confirmed hits earn trust back."""
    table.trust[row] = min(float(table.trust[row]), DOUBTED)


def forget(table: EndpointTable) -> None:
    """Believe everything again."""
    table.trust[:] = 1.0
