"""Expected output length per tenant and model, and bytes per token per model; both learned.

The length is a streaming median: each observation moves the estimate by a fixed share towards it,
so outliers count once and the table needs one number per pair. Bytes per token is an exponentially
weighted mean, because it is nearly constant for a tenant's text.
"""

import math
from collections import OrderedDict

FIRST_GUESS_TOKENS = 256
"""Before anything was seen, capped by the request's own max_tokens."""
_FIRST_STEP, _LAST_STEP = 0.5, 0.02
"""Shares by which the median moves: large at first, small but never 0 later."""
_MAX_PAIRS = 10_000
_RATIO_STEP = 0.05
_RATIO_RANGE = (0.25, 64.0)


class OutputLengths:
    """Streaming medians, at most `_MAX_PAIRS`; the least recently used one is forgotten."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()
        """Median and number of observations."""

    def expected(self, tenant: str, model: str, *, maximum: int | None) -> int:
        """Output tokens to expect, at least 1, never above what the request allows."""
        median, _ = self._known.get((tenant, model), (float(FIRST_GUESS_TOKENS), 0))
        return max(1, round(median if maximum is None else min(median, maximum)))

    def observe(self, tenant: str, model: str, tokens: int) -> None:
        """Move the median by a share; the first observation is taken as it is."""
        if tokens < 1:
            return
        key = (tenant, model)
        median, count = self._known.pop(key, (float(tokens), 0))
        if tokens != median:
            step = max(_LAST_STEP, _FIRST_STEP / (count + 1))
            moved = median * math.exp(math.copysign(step, tokens - median))
            # A step never jumps over the observation itself.
            median = min(moved, tokens) if tokens > median else max(moved, tokens)
        self._known[key] = (median, count + 1)
        if len(self._known) > _MAX_PAIRS:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Back to the first guess."""
        self._known.clear()


class BytesPerToken:
    """How many bytes of the canonical prompt make one token, per model."""

    def __init__(self, first_guess: float) -> None:
        self.first_guess = first_guess
        self._ratio: dict[str, float] = {}

    def of(self, model: str) -> float:
        """Bytes per token; the document's first guess while nothing was measured."""
        return self._ratio.get(model, self.first_guess)

    def observe(self, model: str, *, prompt_bytes: int, prompt_tokens: int) -> None:
        """Learn from the engine's own count. Short prompts say more about templates: ignored."""
        if prompt_tokens < 32 or prompt_bytes < 1:
            return
        seen = min(max(prompt_bytes / prompt_tokens, _RATIO_RANGE[0]), _RATIO_RANGE[1])
        known = self._ratio.get(model)
        if known is None and len(self._ratio) >= _MAX_PAIRS:
            return
        self._ratio[model] = seen if known is None else known + _RATIO_STEP * (seen - known)

    def forget(self) -> None:
        """Back to the first guess."""
        self._ratio.clear()

    def all(self) -> dict[str, float]:
        """Learned ratios by model name."""
        return dict(self._ratio)
